// The shuffle in blocks: what the Python package draws, and what the words of its definition promise.
#include "daemon/plan/block_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "daemon/plan/epoch_order.h"

namespace millrace {
namespace {

using Order = std::vector<std::uint32_t>;

EpochOrderSpec in_blocks(std::uint64_t samples, std::uint32_t block_samples, std::uint32_t window_blocks,
                         std::uint64_t seed = 0, std::uint64_t epoch = 0) {
  return {.samples = samples,
          .seed = seed,
          .epoch = epoch,
          .shuffle = Shuffle::kYes,
          .block_samples = block_samples,
          .window_blocks = window_blocks};
}

// From the Python package's function: a change breaks the resumption of everybody's epochs.
TEST_CASE("orders in blocks stay what they were", "[plan]") {
  CHECK(shuffled_in_blocks(in_blocks(12, 4, 2)) == Order{8, 0, 1, 11, 2, 10, 3, 9, 4, 7, 6, 5});
  CHECK(shuffled_in_blocks(in_blocks(12, 4, 2, 1)) == Order{9, 0, 11, 1, 10, 3, 2, 8, 7, 6, 4, 5});
  CHECK(shuffled_in_blocks(in_blocks(13, 3, 2, 1, 1)) == Order{12, 6, 8, 7, 10, 1, 2, 9, 0, 11, 5, 4, 3});
  CHECK(shuffled_in_blocks(in_blocks(10, 1, 3, (1ULL << 63U) + 5, 1ULL << 40U)) == Order{5, 2, 7, 4, 9, 8, 6, 1, 0, 3});
  CHECK(shuffled_in_blocks(in_blocks(7, 100, 9, 3, 2)) == Order{3, 4, 5, 0, 1, 6, 2});
}

TEST_CASE("a window has whole blocks alone, and an epoch every sample once", "[plan]") {
  for (const std::uint32_t block : {1U, 7U, 64U, 1'000U}) {
    for (const std::uint32_t window : {1U, 3U, 4'000'000'000U}) {
      const std::uint64_t samples = 1'003;
      const Order order = shuffled_in_blocks(in_blocks(samples, block, window, block, window));
      REQUIRE(std::set<std::uint32_t>(order.begin(), order.end()).size() == samples);
      REQUIRE(order.size() == samples);
      const std::uint64_t all_blocks = (samples + block - 1) / block;
      std::set<std::uint32_t> seen;
      for (std::size_t begin = 0; begin < order.size();) {
        std::set<std::uint32_t> blocks;  // of this window
        std::size_t end = begin, has = 0;
        const std::uint64_t blocks_left = all_blocks - seen.size(),
                            wanted = std::min<std::uint64_t>(window, blocks_left);
        for (; end < order.size() && (blocks.size() < wanted || has > end - begin); ++end) {
          const std::uint32_t number = order[end] / block;
          if (blocks.insert(number).second)
            has += std::min<std::uint64_t>(block, samples - static_cast<std::uint64_t>(number) * block);
        }
        REQUIRE(blocks.size() == wanted);
        REQUIRE(end - begin == has);
        for (const std::uint32_t number : blocks) REQUIRE(seen.insert(number).second);
        begin = end;
      }
    }
  }
}

TEST_CASE("shares of an epoch in blocks are the shares of its order", "[plan]") {
  EpochOrderSpec spec = in_blocks(101, 10, 3, 5);
  spec.batch_size = 4;
  spec.world_size = 3;
  spec.tail = ShardTail::kUneven;
  const Order whole = shuffled_in_blocks(spec);

  KnownOrders known;
  for (spec.rank = 0; spec.rank < 3; ++spec.rank) {
    const Result<EpochOrder> order = known.of(spec);
    REQUIRE(order.has_value());
    std::uint64_t position = spec.rank;
    for (std::uint64_t i = 0; i < order->batches(); ++i) {
      for (const SampleId id : order->batch(i)) {
        REQUIRE(raw(id) == whole[position]);
        position += 3;
      }
    }
  }
  EpochOrderSpec other = spec;
  other.rank = 0;
  other.window_blocks = 4;  // another order of the same seed and epoch
  const Result<EpochOrder> one = known.of(other);
  REQUIRE(one.has_value());
  CHECK(*one->shuffled() != whole);
}

}  // namespace
}  // namespace millrace
