// What the daemon lacks, descriptors or memory, costs nobody a sample that is good.
#include <algorithm>
#include <catch2/catch.hpp>

#include "millrace/client.h"
#include "tests/support/host/descriptor_limit.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

// Its frame header claims `side` x `side` pixels.
std::vector<std::byte> claiming_progressive(std::uint32_t side) {
  std::vector<std::byte> jpeg =
      make_jpeg({.pixels = make_pixels(16, 16, 4, 1), .h_samp = 1, .v_samp = 1, .progressive = true});
  const std::byte marker[] = {std::byte{0xFF}, std::byte{0xC2}};
  const auto frame = std::search(jpeg.begin(), jpeg.end(), std::begin(marker), std::end(marker));
  for (const std::ptrdiff_t at : {5, 7}) {
    frame[at] = static_cast<std::byte>(side >> 8);
    frame[at + 1] = static_cast<std::byte>(side & 255);
  }
  return jpeg;
}

BatchRequest skipping(const std::vector<std::string>& paths) {
  BatchRequest request{.on_error = OnError::kSkip};
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
  return request;
}

}  // namespace

TEST_CASE("an epoch under skip loses no sample while the daemon has no descriptor left", "[system]") {
  if (under_sanitizer()) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  TempFolder folder;
  write_image_folder(folder.path(), {.images = 64});
  const Daemon daemon({.roots = {folder.path()}});
  Client client = daemon.connect();
  Session session = need(client.open_session({.slots = 2, .batch = 8, .recipe = Recipe::train(32)}));
  const Dataset dataset = need(session.open_dataset(folder.path()));
  std::optional<Epoch> epoch;
  {
    const auto limit = DescriptorLimit::none(daemon.pid());
    epoch.emplace(session.epoch(dataset, {.shuffle = true, .on_error = OnError::kSkip}));
    REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_fetch_waits_total") > 0; }));
  }

  std::uint64_t good = 0;
  while (const std::optional<Batch> batch = need(epoch->next())) {
    REQUIRE_FALSE(batch->failure);
    REQUIRE(batch->errors.empty());
    good += batch->tensor.samples();
  }

  REQUIRE(good == 64);
  REQUIRE(daemon.metric("millrace_bad_samples_total") == 0);
}

TEST_CASE("a JPEG of a few hundred bytes that takes gigabytes is refused with what it needs, the others are made",
          "[system]") {
  TempFolder folder;
  std::vector<std::string> paths = write_image_folder(folder.path(), {.images = 16, .classes = 0});
  for (std::size_t at : {0, 5, 9, 20}) {
    paths.insert(paths.begin() + static_cast<std::ptrdiff_t>(std::min(at, paths.size())),
                 folder / ("claim_" + std::to_string(at)));
    write_file(folder / ("claim_" + std::to_string(at)), claiming_progressive(13'377));
  }
  const Daemon daemon({.roots = {folder.path()}, .memory = "decoding = \"256 MiB\"\n"});
  Session session = need(daemon.connect().open_session({.slots = 2, .batch = 32, .recipe = Recipe::train(32)}));

  const Batch batch = need(session.wait(need(session.submit(skipping(paths)))));

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.samples() == 16);
  REQUIRE(batch.errors.size() == 4);
  for (const SampleError& error : batch.errors) {
    REQUIRE(error.error.code == Code::kExhausted);
    REQUIRE_THAT(error.error.message,
                 Catch::Contains("GB") && Catch::Contains("268.4 MB") && Catch::Contains("memory.decoding"));
  }
}

TEST_CASE("pictures that take much memory are decoded one after the other by all lanes, and it is given back",
          "[system]") {
  TempFolder folder;
  // 50 MB of coefficients and 25 MB of pixels each.
  const auto large = make_jpeg(
      {.pixels = make_pixels(2'500, 2'500, 4, 1), .quality = 30, .h_samp = 1, .v_samp = 1, .progressive = true});
  std::vector<std::string> paths;
  for (int i = 0; i < 8; ++i) {
    paths.push_back(folder / ("large_" + std::to_string(i) + ".jpg"));
    write_file(paths.back(), large);
  }
  const Daemon daemon({.roots = {folder.path()}, .lanes = 2, .memory = "decoding = \"96 MiB\"\n"});
  Session session = need(daemon.connect().open_session({.slots = 1, .batch = 8, .recipe = Recipe::evaluate(64, 56)}));
  const Bytes before = daemon.memory("VmRSS");

  const Batch batch = need(session.wait(need(session.submit(skipping(paths)))));

  REQUIRE(batch.errors.empty());
  REQUIRE(batch.tensor.samples() == 8);
  REQUIRE(daemon.metric("millrace_decoding_bytes") == 0);
  if (under_sanitizer()) return skip_loudly("the daemon's memory (a sanitizer's shadow counts as well)");
  INFO("before " << to_text(before) << ", at most " << to_text(daemon.memory("VmHWM")) << ", after "
                 << to_text(daemon.memory("VmRSS")));
  REQUIRE(daemon.memory("VmHWM") < before + 128_MiB);
  REQUIRE(daemon.memory("VmRSS") < before + 40_MiB);
}

TEST_CASE("a false claim costs a packed batch its own sample, and more encoded bytes than the budget none",
          "[system]") {
  TempFolder folder;
  std::vector<std::string> paths = write_image_folder(folder.path(), {.images = 48, .classes = 0, .min_side = 180});
  write_file(folder / "claim.png", make_png_header(13'000, 13'000));
  paths.insert(paths.begin() + 3, folder / "claim.png");
  std::vector<std::byte> padded = make_jpeg({.pixels = make_pixels(100, 80, 3, 1)});
  padded.resize(3'000'000);
  write_file(folder / "padded.jpg", padded);
  paths.push_back(folder / "padded.jpg");
  const Daemon daemon({.roots = {folder.path()}, .memory = "encoded_in_flight = \"1 MiB\"\n"});
  Session session = need(daemon.connect().open_session({.slots = 1, .slot_bytes = 16_MiB}));
  BatchRequest request = skipping(paths);
  request.recipe = Recipe{.layout = Layout::kNhwc, .packing = Packing::kPacked};

  const Batch batch = need(session.wait(need(session.submit(std::move(request)))));

  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.errors.size() == 1);
  REQUIRE(batch.errors[0].index == 3);
  REQUIRE_THAT(batch.errors[0].error.message, Catch::Contains("slot_bytes of at least"));
  REQUIRE(batch.tensor.samples() == 49);
}

}  // namespace millrace
