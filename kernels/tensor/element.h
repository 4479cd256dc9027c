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

// The element of that type, in the lower bytes. REQUIRES: of kUint8, a value that is 0..255 once rounded.
std::uint32_t element_bits(DType dtype, float value);

}  // namespace millrace::kernels
