// A sweep: four jobs at once on one dataset, each with its own order and crops, share what the daemon keeps of the files.
// Each gets what it would get alone from a daemon that keeps nothing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <future>
#include <string>
#include <vector>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint64_t kJobs = 4;
constexpr int kEpochs = 6;  // the last ones come from what the first ones left; two of them under sanitizers

struct Job {
  std::uint64_t seed = 0;
  Recipe recipe;
};

// Sizes, crops and fidelities of a sweep's jobs; no two have the same order.
Job job(std::uint64_t number) {
  const std::uint32_t side = number % 2 == 0 ? 96 : 64;
  return {.seed = 100 + number, .recipe = number == 3 ? Recipe::evaluate(side + 16, side) : Recipe::train(side)};
}

std::string boxes(const TensorView& tensor) {
  std::string text;
  for (std::size_t i = 0; i < tensor.samples(); ++i) {
    const SampleInfo info = tensor.sample(i);
    for (const std::int64_t side : {std::int64_t{info.crop.left}, std::int64_t{info.crop.top},
                                    std::int64_t{info.crop.width}, std::int64_t{info.crop.height}})
      text += ' ' + std::to_string(side);
    text += info.flipped ? " flipped;" : ";";
  }
  return text;
}

// Every batch of the job's epochs: ids, labels, a digest of the pixels, boxes and flips.
std::vector<std::string> run_job(const Daemon& daemon, const std::string& pictures, const Job& job) {
  Client client = daemon.connect();
  Session session = need(client.open_session({.slots = 3, .batch = 16, .recipe = job.recipe}));
  const Dataset dataset = need(session.open_dataset(pictures));
  std::vector<std::string> told;
  for (int number = 0; number < rounds(kEpochs); ++number) {
    Epoch epoch =
        session.epoch(dataset, {.seed = job.seed, .epoch = static_cast<std::uint64_t>(number), .shuffle = true});
    for (const Batch& batch : epoch) told.push_back(describe(batch.tensor) + boxes(batch.tensor));
    need(epoch.result());
  }
  return told;
}

void compare(const std::string& pictures, const std::string& root) {
  std::vector<std::vector<std::string>> alone;
  for (std::uint64_t number = 0; number < kJobs; ++number) {
    const Daemon daemon({.roots = {root}, .cache = "index_memory = 0\n"});
    alone.push_back(run_job(daemon, pictures, job(number)));
  }
  const Daemon daemon({.roots = {root}});
  std::vector<std::future<std::vector<std::string>>> sweep;
  for (std::uint64_t number = 0; number < kJobs; ++number)
    sweep.push_back(std::async(std::launch::async, [&, number] { return run_job(daemon, pictures, job(number)); }));

  for (std::uint64_t number = 0; number < kJobs; ++number) {
    CAPTURE(number);
    REQUIRE_FALSE(alone[number].empty());
    REQUIRE(sweep[number].get() == alone[number]);
  }
  REQUIRE(alone[0] != alone[2]);  // alike but for the seed
}

TEST_CASE("four jobs on one dataset get what each would get alone: files just written", "[system]") {
  const TempFolder folder;
  write_image_folder(folder.path(), {.images = 60, .min_side = 100, .max_side = 300});
  compare(folder.path(), folder.path());
}

TEST_CASE("four jobs on one dataset get what each would get alone: files of long ago", "[system]") {
  const auto photos = test_data("photos");
  if (photos) compare(*photos, *photos);
}

}  // namespace
}  // namespace millrace
