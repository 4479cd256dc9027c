#include <catch2/catch.hpp>

#include "daemon/plan/known_positions.h"

namespace millrace {
namespace {

constexpr EpochOrderSpec kSpec{.samples = 100, .seed = 3, .epoch = 1, .shuffle = Shuffle::kYes, .batch_size = 8};

TEST_CASE("a sample's position is where the order has it", "[plan]") {
  EpochOrderSpec one_by_one = kSpec;
  one_by_one.batch_size = 1;
  const EpochOrder order = *EpochOrder::create(one_by_one);
  const EpochPositions positions = order.positions();

  for (std::uint64_t i = 0; i < 100; ++i)
    REQUIRE(positions.of(static_cast<std::uint32_t>(raw(order.batch(i).front()))) == i);
}

TEST_CASE("positions count over all ranks", "[plan]") {
  EpochOrderSpec rank = kSpec;
  rank.batch_size = 1;
  rank.rank = 2;
  rank.world_size = 4;
  const EpochOrder order = *EpochOrder::create(rank);

  for (std::uint64_t i = 0; i < order.batches(); ++i)
    REQUIRE(order.positions().of(static_cast<std::uint32_t>(raw(order.batch(i).front()))) == i * 4 + 2);
}

TEST_CASE("an order that is not shuffled has the listing's positions", "[plan]") {
  EpochOrderSpec spec = kSpec;
  spec.shuffle = Shuffle::kNo;

  REQUIRE(EpochOrder::create(spec)->positions().of(57) == 57);
}

TEST_CASE("positions are worked out once for all who have them, whatever their rank and batches", "[plan]") {
  KnownPositions known;
  EpochOrderSpec rank = kSpec;
  rank.rank = 1;
  rank.world_size = 2;
  rank.batch_size = 5;
  EpochOrderSpec other = kSpec;
  other.epoch = 2;

  auto foreseen = known.of(kSpec);
  REQUIRE(known.of(rank, *EpochOrder::create(rank)) == foreseen);
  REQUIRE(known.of(other) != foreseen);
  REQUIRE(known.of(other)->of(0) == EpochOrder::create(other)->positions().of(0));

  const std::weak_ptr<const EpochPositions> watched = foreseen;
  foreseen.reset();
  REQUIRE(watched.expired());
}

TEST_CASE("of no order there are no positions", "[plan]") {
  KnownPositions known;

  REQUIRE(known.of(EpochOrderSpec{.samples = 0}) == nullptr);
}

}  // namespace
}  // namespace millrace
