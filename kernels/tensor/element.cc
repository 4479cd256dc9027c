#include "kernels/tensor/element.h"

#include <bit>
#include <cmath>

namespace millrace::kernels {
namespace {

// `bits` without its lowest `count` bits, rounded to nearest, ties to even.
std::uint32_t shifted_to_even(std::uint32_t bits, int count) {
  const std::uint32_t half = 1U << (count - 1);
  const std::uint32_t odd = (bits >> count) & 1U;
  return (bits + half - 1 + odd) >> count;
}

}  // namespace

std::size_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 1;
    case DType::kFloat16:
    case DType::kBfloat16:
      return 2;
    case DType::kFloat32:
      return 4;
  }
  return 4;
}

std::uint16_t to_float16(float value) {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  constexpr std::uint32_t kOverflow = 0x477FF000U;        // 65520: rounds to infinity from here on
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2^-14
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= kOverflow) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude >= kSmallestNormal) {
    constexpr std::uint32_t kRebias = (127U - 15U) << 23;
    return static_cast<std::uint16_t>(sign | shifted_to_even(magnitude - kRebias, 13));
  }
  // Subnormal: in units of 2^-24 the value is mantissa * 2^(exponent - 126).
  const int exponent = static_cast<int>(magnitude >> 23);
  const int shift = 126 - exponent;
  if (shift > 24) return static_cast<std::uint16_t>(sign);
  return static_cast<std::uint16_t>(sign | shifted_to_even((magnitude & 0x007FFFFFU) | 0x00800000U, shift));
}

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>(shifted_to_even(bits, 16));
}

std::uint32_t element_bits(DType dtype, float value) {
  switch (dtype) {
    case DType::kUint8:
      return static_cast<std::uint8_t>(std::nearbyint(value));
    case DType::kFloat16:
      return to_float16(value);
    case DType::kBfloat16:
      return to_bfloat16(value);
    case DType::kFloat32:
      break;
  }
  return std::bit_cast<std::uint32_t>(value);
}

}  // namespace millrace::kernels
