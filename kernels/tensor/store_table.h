// The finished outputs of all values that a pixel can have: 256 a channel, so a table makes the arithmetic exact at the
// price of a look-up. out = ((x / 255) - mean) / std, each step rounded to float32 (as torchvision's ToTensor and
// Normalize), then rounded once to the element type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/image_view.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels {

// One entry: what becomes of `pixel` in `colour` (0: red, or grey; 1: green; 2: blue), as bits. Costs divisions.
std::uint32_t element_bits(const StoreSpec& spec, int colour, int pixel);

// How elements of two bytes can be computed: every value's bits are to_float16() or to_bfloat16() of
// fma(value, factor, offset). kNone: wider or narrower elements, or nothing was found that is right for all 256.
struct StoreLine {
  enum class Rounding : std::uint8_t { kNone, kFloat16, kBfloat16 };
  Rounding rounding = Rounding::kNone;
  float factor = 0, offset = 0;
};

// How float32 can be computed, as the definition goes: t = fma(value, unit, value * unit_rest), then d = t - mean, then
// fma(d, factor, d * factor_rest). Both products are with a reciprocal in two parts, which rounds as a division does;
// are_right: for all 256 values.
struct StoreSteps {
  bool are_right = false;
  float unit = 1, unit_rest = 0, mean = 0, factor = 1, factor_rest = 0;
};

// The finished outputs of one tensor channel, as bits: whole, and split into bytes (planes[b][x] is byte b of value x)
// for byte shuffles.
struct alignas(64) StorePlane {
  std::uint32_t values[256];
  std::uint8_t planes[4][256];
  StoreLine line;
  StoreSteps steps;
};

// All tables of one recipe, about 6 KiB. Immutable. Takes tens of microseconds to make.
class StoreTable {
 public:
  explicit StoreTable(const StoreSpec& spec);

  const StoreSpec& spec() const { return spec_; }
  int channels() const { return channel_count(spec_.channels); }
  std::size_t element_bytes() const { return bytes_of(spec_.dtype); }
  std::size_t image_bytes(Size size) const {
    const int frames = spec_.patches ? spec_.patches->temporal : 1;
    return static_cast<std::size_t>(size.width) * size.height * channels() * element_bytes() * frames;
  }
  // Tensor channel `c`, in tensor order.
  const StorePlane& plane(int c) const { return planes_[c]; }
  bool planes_are_equal() const { return planes_are_equal_; }

 private:
  StoreSpec spec_;
  std::array<StorePlane, 3> planes_{};
  bool planes_are_equal_ = true;
};

}  // namespace millrace::kernels
