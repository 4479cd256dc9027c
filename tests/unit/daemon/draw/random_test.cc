#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include "daemon/draw/random.h"

namespace millrace {
namespace {

using Block = std::array<std::uint32_t, 4>;

constexpr RandomStream::Use kCrop = RandomStream::Use::kCrop;
constexpr RandomStream::Use kFlip = RandomStream::Use::kFlip;
constexpr RandomStream::Use kShuffle = RandomStream::Use::kShuffle;

std::vector<std::uint32_t> first_numbers(RandomKey key, RandomStream::Use use, std::size_t count) {
  RandomStream stream(key, use);
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t& number : numbers) number = stream.next();
  return numbers;
}

TEST_CASE("Philox4x32-10 gives its authors' known answers", "[plan]") {
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;

  REQUIRE(philox4x32({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  REQUIRE(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
          Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  REQUIRE(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// The expected numbers of the next four come from a second implementation, in Python. A change of any of them breaks
// the resumption of epochs.
TEST_CASE("a stream's first numbers stay what they were", "[plan]") {
  const std::vector<std::uint32_t> expected{1460244104, 205108957, 3891314742, 3592152376, 478055979, 448320768};

  REQUIRE(first_numbers({42, 7, SampleId{123456789012}}, kCrop, 6) == expected);
}

TEST_CASE("uniform numbers stay what they were", "[plan]") {
  RandomStream stream({42, 7, SampleId{3}}, kFlip);

  REQUIRE(stream.uniform() == 0x1.a5c21152e62d9p-1);
  REQUIRE(stream.uniform() == 0x1.8bc9b40ac1f24p-3);
  REQUIRE(stream.uniform() == 0x1.e0d1c8c809a13p-1);
}

TEST_CASE("bounded numbers stay what they were, below and above 32 bits", "[plan]") {
  RandomStream stream({1, 0, SampleId{0}}, kShuffle);

  for (const std::uint64_t expected : {2, 3, 1, 2, 8, 7, 7, 8, 9, 7, 9, 3}) REQUIRE(stream.below(10) == expected);
  for (const std::uint64_t expected : {908741215823ULL, 8484649463ULL, 580788280774ULL, 838741825633ULL})
    REQUIRE(stream.below((1ULL << 40U) + 12345) == expected);
  for (const std::uint64_t expected : {69873288491847811ULL, 3555145711757496035ULL, 9492349399912665537ULL,
                                       2408031331828174657ULL, 8142249541975362654ULL, 5955308622283282032ULL})
    REQUIRE(stream.below(3ULL << 62U) == expected);
}

TEST_CASE("every part of the key changes the stream", "[plan]") {
  std::set<std::vector<std::uint32_t>> streams;
  for (const std::uint64_t part : {0ULL, 1ULL, 1ULL << 32U, ~0ULL}) {
    streams.insert(first_numbers({part, 5, SampleId{9}}, kCrop, 4));
    streams.insert(first_numbers({77, part, SampleId{9}}, kCrop, 4));
    streams.insert(first_numbers({77, 5, SampleId{part}}, kCrop, 4));
  }
  streams.insert(first_numbers({77, 5, SampleId{9}}, kFlip, 4));
  streams.insert(first_numbers({77, 5, SampleId{9}}, kShuffle, 4));

  REQUIRE(streams.size() == 14);
}

TEST_CASE("uniform numbers fill their interval evenly and never reach its end", "[plan]") {
  RandomStream stream({3, 1, SampleId{4}}, kCrop);
  std::array<int, 10> tenths{};
  for (int i = 0; i < 100'000; ++i) {
    const double value = stream.uniform(-2.0, 3.0);
    REQUIRE(value >= -2.0);
    REQUIRE(value < 3.0);
    ++tenths[static_cast<std::size_t>((value + 2.0) * 2.0)];
  }

  for (const int count : tenths) REQUIRE(std::abs(count - 10'000) < 500);  // 5 standard deviations
}

TEST_CASE("an interval of no width gives its only value", "[plan]") {
  RandomStream stream({3, 1, SampleId{4}}, kCrop);

  REQUIRE(stream.uniform(0.75, 0.75) == 0.75);
}

TEST_CASE("bounded numbers are even for bounds that do not divide the range", "[plan]") {
  RandomStream stream({8, 8, SampleId{8}}, kShuffle);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts[stream.below(6)];

  for (const int count : counts) REQUIRE(std::abs(count - 10'000) < 500);
  REQUIRE(stream.below(1) == 0);
}

}  // namespace
}  // namespace millrace
