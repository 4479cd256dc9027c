// The codes of a deflate block as tables for look-ups (RFC 1951, 3.2). Internal to kernels/cpu/png.
//
// What encoders do not make, though zlib may take it, is not built: literal codes that are not complete. So a look-up
// without a meaning exists in the distances alone, where one code of one bit, or none, is ordinary.
//
//   an entry for up to two literals, a length of at most 10, or both: 0-5 bits, 6-7 how many literals, 8-11 the length
//                           or 0, kNoMatch without one, 16-31 the literals, the first lowest
//   one for a longer length 0-5 bits of code and extra, 8-11 bits of the code, kRare, 16-24 the least length
//   one for a distance      0-5 and 8-11 the same, 16-31 the least distance
//   one that leads on       0-5 the table's bits, 8-11 the next table's, kLeadsOn, 16-31 where that begins
//   one that ends           0-5 bits, kEndsBlock or kInvalid
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace millrace::kernels::png {

inline constexpr unsigned kLiteralBits = 11, kDistanceBits = 8, kMostBits = 15, kShortLength = 10;
inline constexpr std::uint32_t kNoMatch = 1U << 12, kRare = 1U << 13, kEndsBlock = 1U << 14 | kRare,
                               kInvalid = 1U << 15 | kRare, kLeadsOn = kEndsBlock | kInvalid;

struct InflateCodes {
  // The main table, and behind it those of codes with more bits. zlib's examples/enough.c counts 2,342 and 402 entries
  // at most for 286 and 30 symbols.
  std::array<std::uint32_t, 2400> literals;
  std::array<std::uint32_t, 512> distances;

  // From the bits of each symbol's code, 0 to 15. False: not a code that is taken here.
  bool build(std::span<const std::uint8_t> literal_lengths, std::span<const std::uint8_t> distance_lengths);
  void build_fixed();  // RFC 1951, 3.2.6
};

// The code that code lengths are written in: by its next seven bits, bits in 0-3 and the symbol above.
bool build_length_code(std::span<const std::uint8_t, 19> lengths, std::span<std::uint8_t, 128> table);

}  // namespace millrace::kernels::png
