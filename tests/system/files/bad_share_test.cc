// Epochs that leave on_error to the daemon: bad files cost nothing as long as they are the exception, and a folder of
// them ends in an error that says so.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/client.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

// A root with tiny pictures 0000.png ..., of which every `one_in`th is text; the first one is at `one_in / 2`.
struct BadShareMill {
  BadShareMill(std::uint32_t files, std::uint32_t one_in, std::uint32_t batch) {
    const std::vector<std::byte> picture = make_png({.pixels = make_pixels(8, 8, 3, 1)});
    for (std::uint32_t i = 0; i < files; ++i) {
      const std::string path = root + "/" + std::to_string(10'000 + i).substr(1) + ".png";
      if (i % one_in == one_in / 2) {
        bad.push_back(path);
        write_file(path, std::string("no picture"));
      } else {
        write_file(path, picture);
      }
    }
    daemon.emplace(DaemonSpec{.roots = {root}});
    session.emplace(need(daemon->connect().open_session(
        {.slots = 3, .batch = batch, .recipe = {.resize = ExactSize{{8, 8}}}, .timeout = std::chrono::seconds(30)})));
    dataset.emplace(need(session->open_dataset(root)));
  }

  static std::string made(const std::string& path) { return std::filesystem::create_directory(path), path; }

  TempFolder folder;
  std::string root = made(folder / "root");
  std::vector<std::string> bad;
  std::optional<Daemon> daemon;
  std::optional<Session> session;
  std::optional<Dataset> dataset;
};

struct Outcome {
  std::uint64_t images = 0;
  std::uint64_t bad = 0;
  std::size_t failed_batches = 0;
  std::optional<Error> error;
};

// To the epoch's end, past failed batches.
Outcome run_to_end(BadShareMill& mill, const EpochOptions& options) {
  Outcome outcome;
  Epoch epoch = mill.session->epoch(*mill.dataset, options);
  while (true) {
    const auto batch = epoch.next();
    if (!batch) outcome.error = batch.error();
    if (!batch || !*batch) break;
    outcome.images += (*batch)->tensor.samples();
    if ((*batch)->failure) ++outcome.failed_batches;
  }
  outcome.bad = epoch.bad();
  return outcome;
}

TEST_CASE("an epoch by default leaves bad files out in order, and puts others in their place when shuffled",
          "[system]") {
  BadShareMill mill(60, 20, 16);

  const Outcome in_order = run_to_end(mill, {});
  const Outcome shuffled = run_to_end(mill, {.seed = 3, .shuffle = true});

  REQUIRE_FALSE(in_order.error);
  REQUIRE(in_order.images == 57);
  REQUIRE(in_order.bad == 3);
  REQUIRE_FALSE(shuffled.error);
  REQUIRE(shuffled.images == 60);
  REQUIRE(shuffled.bad == 3);
}

TEST_CASE("one bad file in 15 of 2,000 ends an epoch by default, with figures, an example and advice", "[system]") {
  BadShareMill mill(2'000, 15, 50);
  const bool shuffle = GENERATE(false, true);

  const Outcome outcome = run_to_end(mill, {.shuffle = shuffle});

  REQUIRE(outcome.error);
  CAPTURE(outcome.error->message);
  REQUIRE(outcome.error->code == Code::kInvalid);
  REQUIRE_THAT(outcome.error->message,
               Catch::Contains("of the epoch's 1000 samples so far are bad, more than one in 20"));
  REQUIRE_THAT(outcome.error->message, Catch::Contains(mill.root + "/") && Catch::Contains("mend the files"));
  REQUIRE_THAT(outcome.error->message, Catch::Contains("set on_error to skip, zero or substitute"));
  REQUIRE(outcome.images < 1'200);  // what was under way still came
  REQUIRE_FALSE(run_to_end(mill, {.shuffle = shuffle, .on_error = OnError::kSubstitute}).error);
}

TEST_CASE("one bad file in 25 of 2,000 does not end an epoch by default", "[system]") {
  BadShareMill mill(2'000, 25, 50);

  const Outcome outcome = run_to_end(mill, {.shuffle = true});

  REQUIRE_FALSE(outcome.error);
  REQUIRE(outcome.failed_batches == 0);
  REQUIRE(outcome.images == 2'000);
  REQUIRE(outcome.bad == 80);
}

TEST_CASE("a resumed epoch counts its bad files anew", "[system]") {
  BadShareMill mill(2'000, 15, 50);
  Epoch epoch = mill.session->epoch(*mill.dataset, {.batches = 10});
  while (need(epoch.next())) continue;

  const Outcome rest = run_to_end(mill, {.position = epoch.position()});

  REQUIRE(rest.error);
  REQUIRE_THAT(rest.error->message, Catch::Contains("of the epoch's 1000 samples so far"));
}

TEST_CASE("a batch without a good sample fails by default, and goes by when skipping was chosen", "[system]") {
  BadShareMill mill(12, 1, 4);

  const Outcome by_default = run_to_end(mill, {});
  const Outcome chosen = run_to_end(mill, {.on_error = OnError::kSkip});

  REQUIRE(by_default.failed_batches == 3);
  REQUIRE(by_default.bad == 0);
  REQUIRE_FALSE(chosen.error);
  REQUIRE(chosen.failed_batches == 0);
  REQUIRE(chosen.images == 0);
  REQUIRE(chosen.bad == 12);
}

TEST_CASE("a loop over nothing but bad files ends with the files' number, an example and advice", "[system]") {
  BadShareMill mill(12, 1, 4);
  Epoch epoch = mill.session->epoch(*mill.dataset, {.shuffle = true});

  for ([[maybe_unused]] const Batch& batch : epoch) FAIL("a batch came");

  REQUIRE_THAT(epoch.result().error().message,
               Catch::StartsWith("4 of the batch's 4 samples are bad, for example " + mill.root) &&
                   Catch::Contains("mend the files") && Catch::Contains("set on_error to skip or zero"));
}

TEST_CASE("an epoch whose root goes away ends as unavailable by default and goes on from its position", "[system]") {
  BadShareMill mill(64, 1'000, 4);
  Epoch epoch = mill.session->epoch(*mill.dataset, {.shuffle = true});
  std::uint64_t before = need(epoch.next())->tensor.samples();
  std::filesystem::rename(mill.root, mill.folder / "away");
  REQUIRE(eventually([&] { return !mill.session->open_dataset(mill.root); }));

  std::optional<Error> error;
  while (!error) {
    auto batch = epoch.next();
    if (!batch) error = batch.error();
    if (batch && *batch && (*batch)->failure) error = *(*batch)->failure;
    if (!error) before += (*batch)->tensor.samples();
  }
  std::filesystem::rename(mill.folder / "away", mill.root);
  REQUIRE(eventually([&] { return mill.session->open_dataset(mill.root).has_value(); }));
  const Outcome rest = run_to_end(mill, {.shuffle = true, .position = epoch.position()});

  REQUIRE(error->code == Code::kUnavailable);
  REQUIRE_THAT(error->message, Catch::Contains("the root " + mill.root + " is not there"));
  REQUIRE_FALSE(rest.error);
  REQUIRE(before + rest.images == 64);
  REQUIRE(rest.bad == 0);
}

}  // namespace
}  // namespace millrace
