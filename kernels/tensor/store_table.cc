#include "kernels/tensor/store_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace millrace::kernels {
namespace {

StorePlane make_plane(const StoreSpec& spec, int colour) {
  StorePlane plane;
  for (int x = 0; x < 256; ++x) {
    plane.values[x] = element_bits(spec, colour, x);
    for (int b = 0; b < 4; ++b) plane.planes[b][x] = static_cast<std::uint8_t>(plane.values[x] >> (8 * b));
  }
  return plane;
}

bool is_right(const StoreLine& line, const StorePlane& plane) {
  for (int x = 0; x < 256; ++x) {
    const float value = std::fma(static_cast<float>(x), line.factor, line.offset);
    if (!std::isfinite(value)) return false;
    const bool half = line.rounding == StoreLine::Rounding::kFloat16;
    if ((half ? to_float16(value) : to_bfloat16(value)) != plane.values[x]) return false;
  }
  return true;
}

// `ulps` further from zero.
float nudged(float value, int ulps) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(ulps));
}

// The element's few digits hide that this rounds once and the definition three times. Where they do not, numbers
// nearby do: of 500 means and deviations at random four in five need none, and all find one within these.
StoreLine find_line(const StoreSpec& spec, int colour, const StorePlane& plane) {
  StoreLine line;
  if (spec.dtype == DType::kFloat16) line.rounding = StoreLine::Rounding::kFloat16;
  if (spec.dtype == DType::kBfloat16) line.rounding = StoreLine::Rounding::kBfloat16;
  if (line.rounding == StoreLine::Rounding::kNone) return line;
  const double range = spec.normalise || spec.range == ValueRange::kUnit ? 255 : 1;
  const double mean = spec.normalise ? spec.normalise->mean[colour] : 0,
               std = spec.normalise ? spec.normalise->std[colour] : 1;
  const auto factor = static_cast<float>(1 / (range * std)), offset = static_cast<float>(-mean / std);
  constexpr int kMostUlps = 8;
  for (int most = 0; most <= kMostUlps; ++most) {
    for (int i = -most; i <= most; ++i) {
      for (int j = -most; j <= most; ++j) {
        if (std::max(std::abs(i), std::abs(j)) != most) continue;
        line.factor = nudged(factor, i);
        line.offset = nudged(offset, j);
        if (is_right(line, plane)) return line;
      }
    }
  }
  return {};
}

// 1 / divisor in two parts.
void invert(double divisor, float& factor, float& rest) {
  factor = static_cast<float>(1 / divisor);
  rest = static_cast<float>(1 / divisor - factor);
}

StoreSteps find_steps(const StoreSpec& spec, int colour, const StorePlane& plane) {
  StoreSteps steps;
  if (spec.dtype != DType::kFloat32) return steps;
  if (spec.normalise || spec.range == ValueRange::kUnit) invert(255, steps.unit, steps.unit_rest);
  if (spec.normalise) {
    steps.mean = spec.normalise->mean[colour];
    invert(spec.normalise->std[colour], steps.factor, steps.factor_rest);
  }
  for (int x = 0; x < 256; ++x) {
    const auto value = static_cast<float>(x);
    const float unit = std::fma(value, steps.unit, value * steps.unit_rest), centred = unit - steps.mean;
    const float result = std::fma(centred, steps.factor, centred * steps.factor_rest);
    if (std::bit_cast<std::uint32_t>(result) != plane.values[x]) return steps;
  }
  steps.are_right = true;
  return steps;
}

}  // namespace

std::uint32_t element_bits(const StoreSpec& spec, int colour, int pixel) {
  if (spec.dtype == DType::kUint8) return static_cast<std::uint32_t>(pixel);
  float value = static_cast<float>(pixel);
  if (spec.normalise || spec.range == ValueRange::kUnit) value = value / 255.0F;
  if (spec.normalise) value = (value - spec.normalise->mean[colour]) / spec.normalise->std[colour];
  if (spec.dtype == DType::kFloat16) return to_float16(value);
  if (spec.dtype == DType::kBfloat16) return to_bfloat16(value);
  return std::bit_cast<std::uint32_t>(value);
}

StoreTable::StoreTable(const StoreSpec& spec) : spec_(spec) {
  for (int c = 0; c < channels(); ++c) {
    const int colour = colour_of(spec.channels, c);
    planes_[c] = make_plane(spec, colour);
    planes_[c].line = find_line(spec, colour, planes_[c]);
    planes_[c].steps = find_steps(spec, colour, planes_[c]);
    if (!std::ranges::equal(planes_[c].values, planes_[0].values)) planes_are_equal_ = false;
  }
}

}  // namespace millrace::kernels
