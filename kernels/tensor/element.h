// Tensor element types, and the roundings from float32: IEEE 754 round-to-nearest-even, subnormals kept, NaN stays NaN.
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

enum class DType : std::uint8_t { kUint8, kFloat16, kBfloat16, kFloat32 };

std::size_t bytes_of(DType dtype);

std::uint16_t to_float16(float value);
std::uint16_t to_bfloat16(float value);

}  // namespace millrace::kernels
