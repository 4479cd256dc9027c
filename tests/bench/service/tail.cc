// What a few costly images do to the batches of an epoch: the time from one batch to the next where 2 % of the images
// cost some 20 times as much as the others, one lane a core.
#include <numeric>
#include <string>
#include <vector>

#include "tests/bench/figures.h"
#include "tests/bench/rig.h"
#include "tests/bench/service/cores.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kImages = 3'200, kOneIn = 50;
constexpr std::uint32_t kTailSide = 200, kCostlySide = 1'240;
constexpr double kMilliseconds = 1e3;

void write_images(const std::string& folder) {
  const std::vector<std::byte> cheap = make_jpeg({.pixels = make_pixels(kTailSide, kTailSide, 3, 1)});
  const std::vector<std::byte> costly = make_jpeg({.pixels = make_pixels(kCostlySide, kCostlySide, 3, 1)});
  for (std::uint32_t i = 0; i < kImages; ++i)
    write_file(folder + "/" + std::to_string(i) + ".jpg", i % kOneIn == 0 ? costly : cheap);
}

}  // namespace

void run_tail(const BenchOptions& options, const Report& report) {
  const std::vector<int> cores = separate_cores(2);
  const std::uint32_t rounds = options.quick ? 1 : 9;
  report.progress("batches with a few costly images, " + std::to_string(rounds) + " rounds");
  const TempFolder folder;
  write_images(folder.path());
  Rig rig = Rig::start(folder.path(), static_cast<std::uint32_t>(cores.size()));
  Session session =
      must(rig.client.open_session({.slots = 4, .batch = 64, .recipe = Recipe::train(64), .cache = CacheUse::kOff}),
           "opening a session");
  Dataset dataset = must(session.open_dataset(folder.path()), "opening the dataset");
  std::vector<double> late, usual, ratios;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<double> gaps;
    auto last = std::chrono::steady_clock::now();
    Epoch epoch = session.epoch(dataset, {.seed = 1, .epoch = round, .shuffle = true, .on_error = OnError::kFail});
    for ([[maybe_unused]] const Batch& batch : epoch) {
      gaps.push_back(seconds_since(last) * kMilliseconds);
      last = std::chrono::steady_clock::now();
    }
    if (!epoch.result()) give_up("an epoch failed: " + epoch.result().error().message);
    late.push_back(percentile(gaps, 95));
    usual.push_back(std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size()));
    ratios.push_back(late.back() / usual.back());
  }
  report.add({.name = "batch.tail",
              .value = median(late),
              .unit = "ms",
              .rounds = rounds,
              .baseline = Baseline{"the mean", median(usual), median(ratios)},
              .note = "the 95th percentile of the times between two batches"});
}

}  // namespace millrace::bench
