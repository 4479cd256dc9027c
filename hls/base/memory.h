// A card's memory as kernels reach it: words of 512 bits, and numbers in them. A read beyond a buffer gets zeros, a
// write beyond one writes nothing; so no arithmetic on hostile numbers can leave the buffers, even wrong one.
// Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "hls/base/burst.h"

namespace millrace {
namespace hls {

constexpr std::uint32_t kBurstBytes = 64;
static_assert(sizeof(Burst) == kBurstBytes, "a memory word");

// Numbers in a word, by their position; little-endian.
inline std::uint8_t byte_of(const Burst& word, unsigned at) {
  return static_cast<std::uint8_t>(word.part[at / 8 & 7] >> at % 8 * 8);
}
inline std::uint16_t half_of(const Burst& word, unsigned at) {
  return static_cast<std::uint16_t>(word.part[at / 4 & 7] >> at % 4 * 16);
}
inline std::uint32_t number_of(const Burst& word, unsigned at) {
  return static_cast<std::uint32_t>(word.part[at / 2 & 7] >> at % 2 * 32);
}

struct ReadPort {
  const Burst* words;
  std::uint32_t bytes;

  // Words that a buffer has only part of do not count.
  Burst read(std::uint32_t word) const {
    if (word >= bytes / kBurstBytes) return Burst{};
    return words[word];
  }
};

struct WritePort {
  Burst* words;
  std::uint32_t bytes;

  // Bytes first .. first + count - 1 of a word; whole words at once, parts of one by byte strobes.
  void write(std::uint32_t word, const Burst& value, std::uint32_t first, std::uint32_t count) const {
    const std::uint64_t begin = std::uint64_t{word} * kBurstBytes + first;
    if (first + count > kBurstBytes || begin + count > bytes) return;
    if (count == kBurstBytes) {
      words[word] = value;
      return;
    }
    std::memcpy(reinterpret_cast<std::uint8_t*>(words) + begin, reinterpret_cast<const std::uint8_t*>(&value) + first,
                count);
  }
};

}  // namespace hls
}  // namespace millrace
