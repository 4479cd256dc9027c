#include "kernels/tensor/store_table.h"

#include <bit>
#include <cstring>

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
    planes_[c] = make_plane(spec, colour_of(spec.channels, c));
    if (std::memcmp(&planes_[c], &planes_[0], sizeof(StorePlane)) != 0) planes_are_equal_ = false;
  }
}

}  // namespace millrace::kernels
