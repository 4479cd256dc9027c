#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "kernels/jpeg/canonical_code.h"
#include "tests/support/jpeg/jpeg_code.h"

namespace millrace::kernels::jpeg {
namespace {

// A code as the standard spells it, bit by bit: the number and how many bits it has.
struct Spelled {
  std::uint32_t bits;
  int length;
  std::uint8_t symbol;
};

HuffmanSpec spec_of(const JpegCode& code) {
  HuffmanSpec spec{code.counts, {}};
  std::copy(code.symbols.begin(), code.symbols.end(), spec.symbols.begin());
  return spec;
}

// T.81 figures C.1 and C.2, a code after the other.
std::vector<Spelled> spell(const HuffmanSpec& spec) {
  std::vector<Spelled> codes;
  std::uint32_t next = 0;
  for (int length = 1; length <= kMostCodeBits; ++length, next <<= 1) {
    for (int i = 0; i < spec.counts[static_cast<std::size_t>(length - 1)]; ++i)
      codes.push_back({next++, length, spec.symbols[codes.size()]});
  }
  return codes;
}

// T.81 F.2.2.3, from the first 16 bits of a stream. Length 17: there is no such code.
Spelled look_up(const CanonicalCode& code, std::uint32_t top) {
  int length = 1;
  while (length <= kMostCodeBits && top >= code.limit[static_cast<std::size_t>(length - 1)]) ++length;
  if (length > kMostCodeBits) return {0, length, 0};
  const std::uint32_t bits = top >> (kMostCodeBits - length);
  const int at = code.offset[static_cast<std::size_t>(length)] + static_cast<int>(bits);
  return {bits, length, code.symbols.at(static_cast<std::size_t>(at))};
}

bool is_made(const HuffmanSpec& spec, TableKind kind) {
  CanonicalCode code;
  return make_code(spec, kind, code);
}

}  // namespace

TEST_CASE("each code of a Huffman table is found by the stream's next bits, whatever comes behind it",
          "[kernels][jpeg]") {
  std::mt19937 random(31);
  JpegFrequencies frequencies{};
  for (int round = 0; round < 200; ++round) {
    for (std::uint32_t& frequency : frequencies) frequency = random() % 3 == 0 ? random() % 1000 : 0;
    frequencies[random() % 256] = 1;
    const HuffmanSpec spec = spec_of(random_code(frequencies, 255, random));
    CanonicalCode code;
    REQUIRE(make_code(spec, TableKind::kAc, code));

    for (const Spelled& expected : spell(spec)) {
      const int behind = kMostCodeBits - expected.length;
      const std::uint32_t top = expected.bits << behind | (random() & ((1U << behind) - 1));
      const Spelled found = look_up(code, top);
      REQUIRE(found.length == expected.length);
      REQUIRE(found.bits == expected.bits);
      REQUIRE(found.symbol == expected.symbol);
    }
    REQUIRE(look_up(code, 0xFFFF).length == kMostCodeBits + 1);
  }
}

TEST_CASE("Huffman tables whose codes cannot be are refused", "[kernels][jpeg]") {
  HuffmanSpec all_ones, too_many_codes, too_many_symbols, wide_size;
  all_ones.counts[0] = 2;
  too_many_codes.counts[1] = 5;
  too_many_symbols.counts[15] = 255;
  too_many_symbols.counts[14] = 2;
  wide_size.counts[1] = 1;
  wide_size.symbols[0] = 16;

  for (const TableKind kind : {TableKind::kDc, TableKind::kAc}) {
    REQUIRE_FALSE(is_made(all_ones, kind));
    REQUIRE_FALSE(is_made(too_many_codes, kind));
    REQUIRE_FALSE(is_made(too_many_symbols, kind));
  }
  REQUIRE_FALSE(is_made(wide_size, TableKind::kDc));
  REQUIRE(is_made(wide_size, TableKind::kAc));
  too_many_symbols.counts[14] = 1;
  REQUIRE(is_made(too_many_symbols, TableKind::kAc));
}

}  // namespace millrace::kernels::jpeg
