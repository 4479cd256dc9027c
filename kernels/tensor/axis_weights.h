// Which source samples make each output sample along one side, and with what weight: Pillow's definition, before any
// packing for a processor. Values; thread-safe: plain functions.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "kernels/tensor/resample_spec.h"

namespace millrace::kernels {

enum class Axis : std::uint8_t { kColumns, kRows };

// One side of a resampling: outputs first .. first + count - 1 of `out`, from `in` samples. `channels` matters for
// columns only (rows: 1).
struct AxisSpec {
  Axis axis;
  int channels;
  int in;
  int out;
  int first;
  int count;
  Filter filter;
  friend auto operator<=>(const AxisSpec&, const AxisSpec&) = default;
};

inline constexpr int kPrecisionBits = 32 - 8 - 2;

// Output i is sum(weight[i * taps + t] * sample[start[i] + t]) for t in 0..taps-1, plus half, shifted right by
// kPrecisionBits, clamped to 0..255. Invariants: start never falls; 0 <= start[i] and start[i] + taps <= in; |weight|
// < 1.5 * 2^22.
struct AxisWeights {
  int taps = 1;
  std::vector<std::int32_t> start;
  std::vector<std::int32_t> weight;
};

// For kNearest, and where in == out, one tap of weight 1.
AxisWeights axis_weights(const AxisSpec& spec);

// Whether an output's sum may leave 0..255 before it is clamped. Positive weights that add up to 2^22 cannot make it,
// nor can the half that rounding adds to each of so few.
bool may_leave_bytes(const AxisWeights& weights);

// Pillow's filter kernels, at `x` source samples from the centre. REQUIRES: not kNearest.
double filter_value(Filter filter, double x);
double filter_support(Filter filter);

}  // namespace millrace::kernels
