// A folder becomes an epoch of batches: every sample once, labels and records right, the same bytes in every run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "millrace/client.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/describe.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr std::uint32_t kEpochsImages = 37;
constexpr std::uint32_t kClasses = 3;

struct EpochsMill {
  EpochsMill()
      : daemon({.roots = {folder.path()}}),
        client(daemon.connect()),
        session(open()),
        dataset(need(session.open_dataset(pictures))) {}

  Session open() { return need(client.open_session({.slots = 3, .batch = 8, .recipe = Recipe::train(56)})); }

  // Every batch of the epoch as describe() tells it.
  std::vector<std::string> run(const EpochOptions& options) {
    std::vector<std::string> told;
    Epoch epoch = session.epoch(dataset, options);
    for (const Batch& batch : epoch) told.push_back(describe(batch.tensor));
    need(epoch.result());
    return told;
  }
  std::vector<std::uint64_t> ids(const EpochOptions& options) {
    std::vector<std::uint64_t> all;
    Epoch epoch = session.epoch(dataset, options);
    for (const Batch& batch : epoch) {
      for (const std::uint64_t id : batch.tensor.ids()) all.push_back(id);
    }
    need(epoch.result());
    return all;
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths = write_image_folder(pictures, {.images = kEpochsImages, .classes = kClasses});
  Daemon daemon;
  Client client;
  Session session;
  Dataset dataset;
};

std::int64_t class_in(const std::string& path) {
  return std::stoi(path.substr(path.find("/class_") + 7, 2));
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::uint64_t> all_samples() {
  std::vector<std::uint64_t> ids(kEpochsImages);
  for (std::uint32_t i = 0; i < kEpochsImages; ++i) ids[i] = i;
  return ids;
}

TEST_CASE("an epoch brings every sample of a folder once, with its class as label", "[system]") {
  EpochsMill mill;
  REQUIRE(mill.dataset.samples() == kEpochsImages);
  REQUIRE(mill.dataset.classes() == std::vector<std::string>{"class_00", "class_01", "class_02"});
  Epoch epoch = mill.session.epoch(mill.dataset, {.seed = 5, .shuffle = true});
  REQUIRE(need(epoch.shape()).batches == 5);

  std::vector<std::uint64_t> seen;
  for (const Batch& batch : epoch) {
    for (std::size_t i = 0; i < batch.tensor.samples(); ++i) {
      const SampleInfo info = batch.tensor.sample(i);
      const std::string& path = mill.paths.at(info.id);
      CAPTURE(path);
      REQUIRE(info.good());
      REQUIRE(info.label == class_in(path));
      REQUIRE(info.size == Size{56, 56});
      REQUIRE(info.source.width >= 40);
      REQUIRE((info.orientation == 6) ==
              (path.find("image_00006.jpg") != std::string::npos || path.find("image_00028.jpg") != std::string::npos));
      REQUIRE(batch.tensor.pixels(i).size() == 3 * 56 * 56);
      seen.push_back(info.id);
    }
  }

  REQUIRE(epoch.result());
  REQUIRE(seen != all_samples());  // shuffled
  REQUIRE(sorted(seen) == all_samples());
}

TEST_CASE("two runs of an epoch give the same bytes, another seed others", "[system]") {
  EpochsMill mill;

  const auto first = mill.run({.seed = 5, .shuffle = true});
  mill.session = mill.open();
  mill.dataset = need(mill.session.open_dataset(mill.pictures));
  const auto second = mill.run({.seed = 5, .shuffle = true});
  const auto other = mill.run({.seed = 6, .shuffle = true});

  REQUIRE(first.size() == 5);
  REQUIRE(second == first);
  REQUIRE(other != first);
}

TEST_CASE("the number of lanes does not change a byte", "[system]") {
  EpochsMill mill;
  const auto with_two = mill.run({.seed = 5, .shuffle = true});

  const Daemon one_lane({.roots = {mill.folder.path()}, .lanes = 1});
  Client client = one_lane.connect();
  mill.session = need(client.open_session({.slots = 2, .batch = 8, .recipe = Recipe::train(56)}));
  mill.dataset = need(mill.session.open_dataset(mill.pictures));

  REQUIRE(mill.run({.seed = 5, .shuffle = true}) == with_two);
}

TEST_CASE("an epoch without shuffling comes in the order of the paths", "[system]") {
  EpochsMill mill;

  REQUIRE(mill.ids({}) == all_samples());
}

TEST_CASE("drop_last leaves out the batch that is not full", "[system]") {
  EpochsMill mill;

  REQUIRE(mill.ids({.drop_last = true}).size() == 32);
}

TEST_CASE("two ranks share an epoch, padded to the same length", "[system]") {
  EpochsMill mill;

  const auto first = mill.ids({.seed = 9, .shuffle = true, .rank = 0, .world_size = 2});
  const auto second = mill.ids({.seed = 9, .shuffle = true, .rank = 1, .world_size = 2});

  REQUIRE(first.size() == 19);
  REQUIRE(second.size() == 19);
  std::set<std::uint64_t> both(first.begin(), first.end());
  both.insert(second.begin(), second.end());
  REQUIRE(both.size() == kEpochsImages);
}

TEST_CASE("a position resumes after its batch; a position of another epoch is refused and says why", "[system]") {
  EpochsMill mill;
  const EpochOptions options{.seed = 5, .epoch = 1, .shuffle = true};
  const auto whole = mill.ids(options);
  std::string position;
  {
    Epoch epoch = mill.session.epoch(mill.dataset, options);
    for (int i = 0; i < 2; ++i) REQUIRE(need(epoch.next()));
    position = epoch.position();
  }

  EpochOptions resumed = options;
  resumed.position = position;
  EpochOptions other = resumed;
  other.seed = 6;
  EpochOptions damaged = resumed;
  damaged.position[damaged.position.size() / 2] ^= 1;

  REQUIRE(mill.ids(resumed) == std::vector<std::uint64_t>(whole.begin() + 16, whole.end()));
  const auto refused = mill.session.epoch(mill.dataset, other).shape();
  REQUIRE(refused.error().code == Code::kPrecondition);
  REQUIRE_THAT(refused.error().message, Catch::Contains("seed"));
  REQUIRE(mill.session.epoch(mill.dataset, damaged).shape().error().code == Code::kInvalid);
}

TEST_CASE("a stopped epoch gives its slots back, and the session goes on", "[system]") {
  EpochsMill mill;
  {
    Epoch epoch = mill.session.epoch(mill.dataset, {.shuffle = true});
    REQUIRE(need(epoch.next()));
    epoch.stop();
  }

  REQUIRE(sorted(mill.ids({.shuffle = true})) == all_samples());
}

}  // namespace
}  // namespace millrace
