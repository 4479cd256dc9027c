// Epochs shuffled in blocks, through a real daemon: the order that daemon/doc/adr/0043 defines, drawn here once more.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kBlocksImages = 37;

struct BlocksMill {
  // Ids of the batches of an epoch, one after the other.
  std::vector<std::uint64_t> ids(const EpochOptions& options) {
    std::vector<std::uint64_t> all;
    Epoch epoch = session.epoch(dataset, options);
    for (const Batch& batch : epoch) {
      CHECK(batch.errors.empty());
      for (const std::uint64_t id : batch.tensor.ids()) all.push_back(id);
    }
    need(epoch.result());
    return all;
  }

  TempFolder folder;
  std::vector<std::string> paths = write_image_folder(folder / "pictures", {.images = kBlocksImages, .classes = 2});
  Daemon daemon{{.roots = {folder.path()}}};
  Client client = daemon.connect();
  Session session = need(client.open_session({.slots = 3, .batch = 8, .recipe = Recipe::train(56)}));
  Dataset dataset = need(session.open_dataset(folder / "pictures"));
};

std::uint64_t split_mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::vector<std::uint64_t> by_key(std::vector<std::uint64_t> numbers, std::uint64_t start) {
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](auto a, auto b) { return split_mix(a + start) < split_mix(b + start); });
  return numbers;
}

std::vector<std::uint64_t> defined_order(const EpochOptions& options) {
  const std::uint64_t start = split_mix(options.seed + split_mix(options.epoch)), size = options.block_samples;
  std::vector<std::uint64_t> blocks((kBlocksImages + size - 1) / size);
  std::iota(blocks.begin(), blocks.end(), 0);
  blocks = by_key(blocks, split_mix(start));
  std::vector<std::uint64_t> order;
  for (std::size_t first = 0; first < blocks.size(); first += options.window_blocks) {
    std::vector<std::uint64_t> window;
    for (std::size_t i = first; i < std::min<std::size_t>(blocks.size(), first + options.window_blocks); ++i) {
      for (std::uint64_t id = blocks[i] * size; id < std::min<std::uint64_t>(kBlocksImages, (blocks[i] + 1) * size);
           ++id) {
        window.push_back(id);
      }
    }
    std::sort(window.begin(), window.end());
    for (const std::uint64_t id : by_key(window, start)) order.push_back(id);
  }
  return order;
}

TEST_CASE("an epoch in blocks has the order that is defined, whatever blocks and window are", "[system]") {
  BlocksMill mill;
  const auto [block, window] =
      GENERATE(table<std::uint32_t, std::uint32_t>({{4, 2}, {1, 5}, {5, 1}, {10, 100}, {64, 1}}));
  CAPTURE(block, window);
  const EpochOptions options{.seed = 11, .epoch = 2, .shuffle = true, .block_samples = block, .window_blocks = window};

  const std::vector<std::uint64_t> order = defined_order(options);
  CHECK(mill.ids(options) == order);

  // Ranks take turns.
  std::vector<std::uint64_t> together(order.size());
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EpochOptions of_rank = options;
    of_rank.rank = rank;
    of_rank.world_size = 2;
    of_rank.shard_tail = ShardTail::kUneven;
    const auto mine = mill.ids(of_rank);
    for (std::size_t i = 0; i < mine.size(); ++i) together.at(2 * i + rank) = mine[i];
  }
  CHECK(together == order);
}

TEST_CASE("an epoch in blocks resumes after its batch, and is refused with another window", "[system]") {
  BlocksMill mill;
  const EpochOptions options{.seed = 3, .shuffle = true, .block_samples = 4, .window_blocks = 3};
  EpochOptions resumed = options;
  {
    Epoch epoch = mill.session.epoch(mill.dataset, options);
    for (int i = 0; i < 2; ++i) REQUIRE(need(epoch.next()));
    resumed.position = epoch.position();
  }
  const auto whole = defined_order(options);
  CHECK(mill.ids(resumed) == std::vector<std::uint64_t>(whole.begin() + 16, whole.end()));

  EpochOptions other = resumed;
  other.window_blocks = 2;
  const auto refused = mill.session.epoch(mill.dataset, other).shape();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kPrecondition);
  CHECK_THAT(refused.error().message, Catch::Contains("window"));
}

TEST_CASE("blocks without their window, or without shuffling, are refused by name", "[system]") {
  BlocksMill mill;
  const auto code = [&](const EpochOptions& options) {
    return mill.session.epoch(mill.dataset, options).shape().error().code;
  };
  CHECK(code({.shuffle = true, .block_samples = 4}) == Code::kInvalid);
  CHECK(code({.shuffle = true, .window_blocks = 4}) == Code::kInvalid);
  CHECK(code({.block_samples = 4, .window_blocks = 4}) == Code::kInvalid);
}

}  // namespace
}  // namespace millrace
