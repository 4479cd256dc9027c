// The kernel table as compilers read it: which arguments are pointers, how many bytes each may reach, and what registers
// say. Values; thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hls/table/kernel_table.h"

namespace millrace::card {

constexpr bool is_pointer(std::size_t argument) {
  return hls::kArguments[argument].access != hls::Access::kScalar;
}

constexpr std::size_t count_pointers() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i) count += is_pointer(i);
  return count;
}

constexpr std::size_t kPointerCount = count_pointers();

// Which of the pointers, counted alone, `argument` is.
constexpr std::size_t pointer_number(std::size_t argument) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < argument; ++i) number += is_pointer(i);
  return number;
}

// The scalar that says how many bytes there are at the pointer `argument`: NAME_bytes for NAME. kArgumentCount: none.
constexpr std::size_t bytes_argument(std::size_t argument) {
  const std::string_view name = hls::kArguments[argument].name;
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i) {
    const std::string_view other = hls::kArguments[i].name;
    if (other.size() == name.size() + 6 && other.substr(0, name.size()) == name &&
        other.substr(name.size()) == "_bytes")
      return i;
  }
  return hls::kArgumentCount;
}

constexpr bool every_pointer_has_bytes() {
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i)
    if (is_pointer(i) && bytes_argument(i) == hls::kArgumentCount) return false;
  return true;
}
static_assert(every_pointer_has_bytes(), "an address cannot be checked without a size");

// Words of a register file that the arguments take.
constexpr std::size_t words_needed() {
  std::size_t most = 0;
  for (std::size_t i = 0; i < hls::kArgumentCount; ++i) {
    const std::size_t end = hls::kArguments[i].offset / 4u + (is_pointer(i) ? 2 : 1);
    if (end > most) most = end;
  }
  return most;
}

// REQUIRES: words_needed() words at `registers`.
inline std::uint64_t read_argument(const std::uint32_t* registers, std::size_t argument) {
  const std::uint32_t* const at = registers + hls::kArguments[argument].offset / 4;
  return is_pointer(argument) ? at[0] | std::uint64_t{at[1]} << 32 : at[0];
}

}  // namespace millrace::card
