#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "daemon/plan/epoch_order.h"

namespace millrace {
namespace {

using Ids = std::vector<std::uint64_t>;

Ids ids_of(const EpochOrder& order) {
  Ids ids;
  for (std::uint64_t i = 0; i < order.batches(); ++i) {
    for (const SampleId id : order.batch(i)) ids.push_back(raw(id));
  }
  return ids;
}

Ids epoch_of(const EpochOrderSpec& spec) {
  Result<EpochOrder> order = EpochOrder::create(spec);
  REQUIRE(order.has_value());
  Ids ids = ids_of(*order);
  REQUIRE(ids.size() == order->samples());
  return ids;
}

// How often each sample comes, over all ranks.
std::map<std::uint64_t, int> counts_over_ranks(EpochOrderSpec spec) {
  std::map<std::uint64_t, int> counts;
  for (spec.rank = 0; spec.rank < spec.world_size; ++spec.rank) {
    for (const std::uint64_t id : epoch_of(spec)) ++counts[id];
  }
  return counts;
}

Error error_of(const EpochOrderSpec& spec) {
  const Result<EpochOrder> order = EpochOrder::create(spec);
  REQUIRE_FALSE(order.has_value());
  return order.error();
}

// From a second implementation, in Python: a change breaks the resumption of everybody's epochs.
TEST_CASE("the first orders stay what they were", "[plan]") {
  const auto order = [](std::uint64_t seed, std::uint64_t epoch) {
    return epoch_of({.samples = 10, .seed = seed, .epoch = epoch, .shuffle = Shuffle::kYes, .batch_size = 4});
  };

  REQUIRE(order(0, 0) == Ids{9, 0, 5, 4, 2, 3, 7, 6, 8, 1});
  REQUIRE(order(1, 0) == Ids{0, 6, 8, 5, 3, 4, 7, 1, 9, 2});
  REQUIRE(order(1, 1) == Ids{3, 2, 9, 6, 7, 0, 5, 4, 8, 1});
  REQUIRE(order((1ULL << 63U) + 5, 1ULL << 40U) == Ids{0, 5, 3, 1, 7, 4, 9, 8, 2, 6});
}

TEST_CASE("without shuffling, samples come as the dataset lists them", "[plan]") {
  REQUIRE(epoch_of({.samples = 5, .batch_size = 2}) == Ids{0, 1, 2, 3, 4});
  REQUIRE(epoch_of({.samples = 7, .batch_size = 2, .rank = 1, .world_size = 3, .tail = ShardTail::kUneven}) ==
          Ids{1, 4});
}

TEST_CASE("uneven ranks together cover the epoch exactly once", "[plan]") {
  for (const std::uint64_t samples : {7ULL, 64ULL, 1000ULL, 1001ULL}) {
    for (const std::uint32_t world : {1U, 2U, 3U, 7U}) {
      const auto counts = counts_over_ranks({.samples = samples,
                                             .seed = samples,
                                             .shuffle = Shuffle::kYes,
                                             .batch_size = 16,
                                             .world_size = world,
                                             .tail = ShardTail::kUneven});

      REQUIRE(counts.size() == samples);
      REQUIRE(std::all_of(counts.begin(), counts.end(), [](const auto& count) { return count.second == 1; }));
    }
  }
}

TEST_CASE("padded ranks have as many samples each, and the extra ones are the epoch's first", "[plan]") {
  EpochOrderSpec spec{.samples = 10, .seed = 1, .shuffle = Shuffle::kYes, .batch_size = 3, .world_size = 4};
  const Ids whole{0, 6, 8, 5, 3, 4, 7, 1, 9, 2};

  Ids interleaved(12);
  for (spec.rank = 0; spec.rank < 4; ++spec.rank) {
    const Ids ids = epoch_of(spec);
    REQUIRE(ids.size() == 3);
    for (std::size_t i = 0; i < ids.size(); ++i) interleaved[i * 4 + spec.rank] = ids[i];
  }

  REQUIRE(std::equal(whole.begin(), whole.end(), interleaved.begin()));
  REQUIRE(interleaved[10] == whole[0]);
  REQUIRE(interleaved[11] == whole[1]);
}

TEST_CASE("padding wraps as often as a world larger than the dataset needs", "[plan]") {
  const auto counts =
      counts_over_ranks({.samples = 3, .seed = 2, .shuffle = Shuffle::kYes, .batch_size = 2, .world_size = 8});

  REQUIRE(counts.size() == 3);
  for (const auto& [id, count] : counts) REQUIRE((count == 2 || count == 3));
}

TEST_CASE("dropping the tail leaves out fewer samples than there are ranks", "[plan]") {
  const auto counts = counts_over_ranks({.samples = 1003,
                                         .seed = 2,
                                         .shuffle = Shuffle::kYes,
                                         .batch_size = 10,
                                         .world_size = 4,
                                         .tail = ShardTail::kDrop});

  REQUIRE(counts.size() == 1000);
  for (const auto& [id, count] : counts) REQUIRE(count == 1);
}

TEST_CASE("drop_last leaves out the batch that is not full", "[plan]") {
  const Result<EpochOrder> kept = EpochOrder::create({.samples = 10, .batch_size = 4});
  const Result<EpochOrder> dropped =
      EpochOrder::create({.samples = 10, .last_batch = LastBatch::kDrop, .batch_size = 4});

  REQUIRE(kept->batches() == 3);
  REQUIRE(kept->batch(2).size() == 2);
  REQUIRE(dropped->batches() == 2);
  REQUIRE(dropped->samples() == 8);
}

TEST_CASE("any batch can be had without the ones before it", "[plan]") {
  const EpochOrderSpec spec{.samples = 1000, .seed = 4, .epoch = 2, .shuffle = Shuffle::kYes, .batch_size = 7};
  const Result<EpochOrder> first = EpochOrder::create(spec), restarted = EpochOrder::create(spec);

  for (const std::uint64_t index : {142ULL, 0ULL, 77ULL}) REQUIRE(restarted->batch(index) == first->batch(index));
}

TEST_CASE("an order that cannot be is refused by the field's name", "[plan]") {
  REQUIRE(error_of({.samples = 4, .batch_size = 0}).message.starts_with("batch_size:"));
  REQUIRE(error_of({.samples = 4, .rank = 2, .world_size = 2}).message.starts_with("rank:"));
  REQUIRE(error_of({.samples = 4, .world_size = 0}).message.starts_with("world_size:"));
  REQUIRE(error_of({.samples = 0}).message.starts_with("dataset_id:"));
  REQUIRE(error_of({.samples = 2, .rank = 3, .world_size = 4, .tail = ShardTail::kUneven})
              .message.starts_with("world_size:"));
  REQUIRE(error_of({.samples = 3, .world_size = 4, .tail = ShardTail::kDrop}).message.starts_with("world_size:"));
  REQUIRE(error_of({.samples = 3, .last_batch = LastBatch::kDrop, .batch_size = 4}).message.starts_with("batch_size:"));
  REQUIRE(error_of({.samples = 1ULL << 32U, .shuffle = Shuffle::kYes}).message.starts_with("shuffle:"));
  REQUIRE(error_of({.samples = 4, .batch_size = 0}).code == Code::kInvalid);
}

}  // namespace
}  // namespace millrace
