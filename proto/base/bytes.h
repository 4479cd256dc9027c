// Sizes in bytes, with arithmetic that cannot be mixed with counts, and text for messages. Immutable.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace millrace {

struct Bytes {
  std::uint64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.count * n}; }
  constexpr Bytes& operator+=(Bytes b) { return count += b.count, *this; }
  constexpr Bytes& operator-=(Bytes b) { return count -= b.count, *this; }
};

constexpr Bytes operator""_B(unsigned long long n) {
  return {n};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {n << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {n << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {n << 30};
}

// `size` rounded up to a multiple of `alignment`, a power of two.
constexpr Bytes align_up(Bytes size, std::uint64_t alignment) {
  return {(size.count + alignment - 1) & ~(alignment - 1)};
}

std::string to_text(Bytes size);  // "38.5 MB", "1.2 GB", "812 B": decimal units
// The same, so that it reads differently from `other` wherever the two differ: "1073741825 B" beside "1073741824 B".
std::string to_text_beside(Bytes size, Bytes other);

using ByteView = std::span<const std::byte>;
using MutableByteView = std::span<std::byte>;

}  // namespace millrace
