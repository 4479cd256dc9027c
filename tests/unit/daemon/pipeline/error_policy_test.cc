#include "daemon/pipeline/batch/error_policy.h"

#include <catch2/catch.hpp>
#include <memory>

namespace millrace {
namespace {

constexpr Bytes kImage{8};  // 4x2 pixels, grey

std::unique_ptr<const TensorLayout> layout_of(Packing packing, std::optional<Patches> patches = {}) {
  Recipe recipe{.resize = ExactSize{{4, 2}}, .channels = Channels::kGrey, .packing = packing, .patches = patches};
  return *TensorLayout::create(std::make_shared<const Recipe>(recipe), 1000);
}

// `count` samples in their places, one after the other every `apart` bytes, of which those in `bad` are not good.
std::vector<FinishedSample> samples(std::vector<std::uint32_t> bad, std::uint64_t apart = kImage.count,
                                    Bytes bytes = kImage, std::uint32_t count = 4) {
  std::vector<FinishedSample> made;
  for (std::uint32_t i = 0; i < count; ++i) made.push_back({.good = true, .place = SlotRange{i * apart, bytes}});
  for (const std::uint32_t i : bad) made[i].good = false;
  return made;
}

Repair moved(std::uint64_t to, std::uint64_t from, Bytes bytes = kImage) {
  return {.to = {to, bytes}, .from = from};
}

Repair zeroed(std::uint64_t at) {
  return {.to = {at, kImage}, .from = std::nullopt};
}

using Order = std::vector<std::uint32_t>;
using Repairs = std::vector<Repair>;

TEST_CASE("a slot without bad samples needs no repairs, whatever becomes of them", "[pipeline]") {
  const auto on_error = GENERATE(OnError::kFail, OnError::kSkip, OnError::kZero, OnError::kSubstitute);

  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), on_error, samples({}), Bytes{32});

  REQUIRE(slot->order == Order{0, 1, 2, 3});
  REQUIRE(slot->repairs.empty());
  REQUIRE(slot->zeroed.empty());
  REQUIRE(slot->tensor == Bytes{32});
}

TEST_CASE("on_error fail allows for no bad sample", "[pipeline]") {
  REQUIRE_FALSE(apply_error_policy(*layout_of(Packing::kOneSize), OnError::kFail, samples({1, 3}), Bytes{32}));
}

TEST_CASE("on_error skip closes the gaps and keeps the order", "[pipeline]") {
  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kSkip, samples({0, 2}), Bytes{32});

  REQUIRE(slot->order == Order{1, 3});
  REQUIRE(slot->repairs == Repairs{moved(0, 8), moved(8, 24)});
  REQUIRE(slot->places[1] == SlotRange{0, kImage});
  REQUIRE(slot->places[3] == SlotRange{8, kImage});
  REQUIRE(slot->tensor == Bytes{16});
}

TEST_CASE("on_error skip moves nothing that lies before the first gap", "[pipeline]") {
  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kSkip, samples({3}), Bytes{32});

  REQUIRE(slot->order == Order{0, 1, 2});
  REQUIRE(slot->repairs.empty());
  REQUIRE(slot->tensor == Bytes{24});
}

TEST_CASE("on_error skip closes the gaps of a packed tensor at packed alignment", "[pipeline]") {
  const auto packed = samples({1}, kPackedAlignment);

  const auto slot =
      apply_error_policy(*layout_of(Packing::kPacked), OnError::kSkip, packed, Bytes{3 * kPackedAlignment + 8});

  REQUIRE(slot->order == Order{0, 2, 3});
  REQUIRE(slot->repairs ==
          Repairs{moved(kPackedAlignment, 2 * kPackedAlignment), moved(2 * kPackedAlignment, 3 * kPackedAlignment)});
  REQUIRE(slot->tensor == Bytes{2 * kPackedAlignment + 8});
}

TEST_CASE("on_error skip leaves no gap between patches", "[pipeline]") {
  const auto layout = layout_of(Packing::kPacked, Patches{.size = {2, 1}, .temporal = 2});
  constexpr Bytes kFourPatches{16};

  const auto slot = apply_error_policy(*layout, OnError::kSkip, samples({1}, 16, kFourPatches), Bytes{64});

  REQUIRE(slot->repairs == Repairs{moved(16, 32, kFourPatches), moved(32, 48, kFourPatches)});
  REQUIRE(slot->tensor == Bytes{48});
}

TEST_CASE("on_error skip with nothing left leaves an empty tensor", "[pipeline]") {
  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kSkip, samples({0, 1, 2, 3}), Bytes{32});

  REQUIRE(slot->order.empty());
  REQUIRE(slot->repairs.empty());
  REQUIRE(slot->tensor == Bytes{0});
}

TEST_CASE("on_error zero clears the pixels of bad samples where they are", "[pipeline]") {
  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kZero, samples({2}), Bytes{32});

  REQUIRE(slot->order == Order{0, 1, 2, 3});
  REQUIRE(slot->repairs == Repairs{zeroed(16)});
  REQUIRE(slot->zeroed == std::vector<std::uint32_t>{2});
  REQUIRE(slot->tensor == Bytes{32});
}

TEST_CASE("a bad sample that was never laid out has the place of its number, or in a packed tensor no pixels",
          "[pipeline]") {
  auto unplaced = samples({2});
  unplaced[2].place.reset();

  const auto one_size = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kZero, unplaced, Bytes{32});
  const auto packed = apply_error_policy(*layout_of(Packing::kPacked), OnError::kZero, unplaced, Bytes{32});

  REQUIRE(one_size->places[2] == SlotRange{16, kImage});
  REQUIRE(one_size->repairs == Repairs{zeroed(16)});
  REQUIRE(packed->places[2] == SlotRange{0, Bytes{0}});
  REQUIRE(packed->repairs.empty());
  REQUIRE(packed->zeroed == std::vector<std::uint32_t>{2});
}

TEST_CASE("on_error substitute takes the nearest good sample before, else after", "[pipeline]") {
  const auto slot = apply_error_policy(*layout_of(Packing::kOneSize), OnError::kSubstitute, samples({0, 3}), Bytes{32});

  REQUIRE(slot->order == Order{1, 1, 2, 2});
  REQUIRE(slot->repairs == Repairs{moved(0, 8), moved(24, 16)});
  REQUIRE(slot->zeroed.empty());
}

TEST_CASE("a stand-in in a packed tensor is pointed at and not copied", "[pipeline]") {
  const auto packed = samples({0, 3}, kPackedAlignment);

  const auto slot =
      apply_error_policy(*layout_of(Packing::kPacked), OnError::kSubstitute, packed, Bytes{3 * kPackedAlignment + 8});

  REQUIRE(slot->order == Order{1, 1, 2, 2});
  REQUIRE(slot->repairs.empty());
}

// Four samples in two views, of 8 and of 2 bytes: 0 to 32, and 64 to 72.
TEST_CASE("what is done to bad samples is done to each of their views", "[pipeline]") {
  const Recipe large{.resize = ExactSize{{4, 2}}, .channels = Channels::kGrey};
  const Recipe small{.resize = ExactSize{{2, 1}}, .channels = Channels::kGrey};
  const auto recipe = std::make_shared<const Recipe>(Recipe::of_views({large, small}));
  const auto layout = *TensorLayout::create(recipe, 1000);
  constexpr Bytes kSmall{2}, kAll{128};

  const auto skipped = apply_error_policy(*layout, OnError::kSkip, samples({1}), kAll);
  const auto zeroes = apply_error_policy(*layout, OnError::kZero, samples({1}), kAll);
  const auto others = apply_error_policy(*layout, OnError::kSubstitute, samples({1}), kAll);
  const auto none = apply_error_policy(*layout, OnError::kSkip, samples({}), kAll);

  REQUIRE(skipped->order == Order{0, 2, 3});
  REQUIRE(skipped->repairs == Repairs{moved(8, 16), moved(16, 24), moved(66, 68, kSmall), moved(68, 70, kSmall)});
  REQUIRE(skipped->tensor == kAll);
  REQUIRE(zeroes->repairs == Repairs{zeroed(8), Repair{.to = {66, kSmall}, .from = std::nullopt}});
  REQUIRE(others->repairs == Repairs{moved(8, 0), moved(66, 64, kSmall)});
  REQUIRE(none->repairs.empty());
}

TEST_CASE("on_error substitute allows for no batch without a good sample", "[pipeline]") {
  REQUIRE_FALSE(
      apply_error_policy(*layout_of(Packing::kOneSize), OnError::kSubstitute, samples({0, 1, 2, 3}), Bytes{32}));
}

}  // namespace
}  // namespace millrace
