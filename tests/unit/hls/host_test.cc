// The host's side of a card: what the planner refuses and shares, and how completions are read.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "hls/decoder/jpeg/decode_jpeg.h"
#include "hls/host/room.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/hls/rig.h"

namespace millrace {
namespace {

using hls::Completion;

struct Planned {
  File file;
  hls::ImageRequest request;
  hls::Planner planner;
  std::vector<std::byte> commands = std::vector<std::byte>(std::size_t{1} << 20);

  explicit Planned(const hls::BatchRecipe& recipe = {}, File bytes = make_jpeg({.pixels = make_pixels(100, 80, 3, 1)}))
      : file(std::move(bytes)), planner(recipe) {
    request = {
        .file_untrusted = file_bytes(file), .crop = {10, 5, 80, 70}, .resized = {40, 40}, .window = {4, 5, 30, 20}};
    planner.begin(commands, 3);
  }
  template <typename Change>
  std::string refusal(Change change) {
    hls::ImageRequest other = request;
    change(other);
    return std::string(planner.add(other));
  }
};

TEST_CASE("the planner refuses what a card cannot make", "[hls][planner]") {
  using hls::ImageRequest;
  Planned planned;
  const auto is_refused = [&](auto change) { return !planned.refusal(change).empty(); };
  REQUIRE(is_refused([](ImageRequest& request) { request.orientation = static_cast<kernels::Orientation>(6); }));
  REQUIRE(is_refused([](ImageRequest& request) { request.crop.left = 21; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.crop.width = 0; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.resized = {4097, 40}; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.resized = {0, 0}; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.window.left = 11; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.window.height = -1; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.tensor = 32; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.tensor = std::uint64_t{1} << 38; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.at = std::uint64_t{1} << 32; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.stored = {80, 100}; }));
  REQUIRE(is_refused([](ImageRequest& request) { request.file_untrusted = request.file_untrusted.first(300); }));
  REQUIRE(is_refused([](ImageRequest& request) { request.file_untrusted = {}; }));
  REQUIRE(is_refused([](ImageRequest& request) {
    request.resized = {1, 40};
    request.window = {0, 0, 1, 40};
  }));
  REQUIRE(planned.planner.images() == 0);
  REQUIRE(planned.refusal([](ImageRequest&) {}) == "");
  REQUIRE(planned.planner.images() == 1);
}

TEST_CASE("the planner refuses progressive files and sides beyond the card's", "[hls][planner]") {
  Planned progressive({}, make_jpeg({.pixels = make_pixels(100, 80, 3, 1), .progressive = true}));
  REQUIRE_FALSE(progressive.refusal([](hls::ImageRequest&) {}).empty());
  Planned wide({}, make_jpeg({.pixels = make_pixels(4097, 80, 1, 1)}));
  REQUIRE_FALSE(wide.refusal([](hls::ImageRequest&) {}).empty());
  Planned widest({}, make_jpeg({.pixels = make_pixels(4096, 80, 1, 1)}));
  REQUIRE(widest.refusal([](hls::ImageRequest&) {}) == "");
  REQUIRE_FALSE(hls::is_possible({.store = {.patches = kernels::Patches{}}}));
  REQUIRE(hls::is_possible({}));
}

TEST_CASE("the planner refuses resamplings that the card's memories have no room for", "[hls][planner]") {
  const hls::BatchRecipe lanczos{.filter = kernels::Filter::kLanczos};
  Planned large(lanczos, make_jpeg({.pixels = make_pixels(4096, 1000, 1, 1)}));
  const auto refusal = [&](kernels::Box crop, kernels::Size resized) {
    large.planner.begin(large.commands, 3);
    return large.refusal([&](hls::ImageRequest& request) {
      request.crop = crop;
      request.resized = resized;
      request.window = kernels::whole(resized);
    });
  };
  REQUIRE_FALSE(refusal({0, 0, 4096, 1000}, {4096, 200}).empty());  // 31 taps of 4,096 pixels
  for (const int width : {390, 1000, 2000, 3000, 4000, 4090, 4096})
    REQUIRE(refusal({0, 0, 4096, 1000}, {width, 900}) == "");
}

TEST_CASE("images of a batch share axis tables, and a batch takes as many as its memory has room for",
          "[hls][planner]") {
  Planned planned;
  const std::size_t none = planned.planner.command_bytes();
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == "");
  const std::size_t one = planned.planner.command_bytes() - none;
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == "");
  REQUIRE(planned.planner.command_bytes() == none + one + sizeof(hls::JpegTables));
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == "");
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == hls::Planner::kFull);

  std::vector<std::byte> small(none + 2 * one);
  planned.planner.begin(small, 3);
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == "");
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == "");
  REQUIRE(planned.refusal([](hls::ImageRequest&) {}) == hls::Planner::kFull);
  REQUIRE(planned.planner.images() == 2);
  REQUIRE(planned.planner.command_bytes() <= small.size());
}

std::vector<std::byte> bytes_of(const std::vector<Completion>& completions) {
  const auto bytes = std::as_bytes(std::span(completions));
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("completions are read by their cookies, and a card that breaks the contract is found out",
          "[hls][completions]") {
  const std::vector<Completion> good = {{2, 7, 0, 1, 0, 10, 3}, {0, 7, 3, 0, 0, 11, 4}, {1, 7, 5, 2, 0, 12, 5}};
  std::vector<hls::ImageOutcome> outcomes(3);
  REQUIRE(hls::read_completions(bytes_of(good), 7, outcomes) == "");
  REQUIRE(outcomes[0].reason == hls::Reason::kDamaged);
  REQUIRE(outcomes[1].reason == hls::Reason::kTooLong);
  REQUIRE(outcomes[2].reason == hls::Reason::kDone);
  REQUIRE(outcomes[2].symbols == 10);
  REQUIRE(outcomes[2].sum == 3);
  REQUIRE(outcomes[1].lane == 2);

  const auto is_broken = [&](auto change) {
    auto other = good;
    change(other);
    return !hls::read_completions(bytes_of(other), 7, outcomes).empty();
  };
  REQUIRE(is_broken([](auto& all) { all[1].phase = 6; }));
  REQUIRE(is_broken([](auto& all) { all[2] = {}; }));
  REQUIRE(is_broken([](auto& all) { all[1].cookie = 3; }));
  REQUIRE(is_broken([](auto& all) { all[1].cookie = 2; }));
  REQUIRE(is_broken([](auto& all) { all[0].reason = 6; }));
  REQUIRE(is_broken([](auto& all) { all[0].zero = 1; }));
}

TEST_CASE("a tensor's sum is that of its words, the last one filled up with zeros", "[hls][completions]") {
  const std::uint8_t bytes[] = {1, 0, 0, 0x80, 2, 0, 0, 0x80, 7, 1};
  REQUIRE(hls::tensor_sum(std::as_bytes(std::span(bytes))) == 3 + 0x107);
  REQUIRE(hls::tensor_sum({}) == 0);
}

TEST_CASE("what there is room for by its sizes, the planner does not refuse for want of it", "[hls]") {
  std::mt19937 random(17);
  int roomy = 0, not_roomy = 0;
  for (int round = 0; round < rounds(4000); ++round) {
    const kernels::Size source{1 + below(random, 1200), 1 + below(random, 1200)};
    const kernels::Size target{1 + below(random, 900), 1 + below(random, 900)};
    const int width = 1 + below(random, target.width), height = 1 + below(random, target.height);
    const kernels::Box window{below(random, target.width - width + 1), below(random, target.height - height + 1), width,
                              height};
    const auto filter = static_cast<kernels::Filter>(below(random, 6));
    const bool fits =
        hls::why_no_room({.source = source, .target = target, .window = window, .filter = filter}).empty();
    ++(fits ? roomy : not_roomy);
    if (!fits) continue;
    const std::vector<std::uint8_t> pixels(std::size_t(source.width) * source.height);
    std::vector<std::byte> commands(std::size_t{8} << 20);
    hls::Planner planner({.filter = filter});
    planner.begin(commands, 1);
    CAPTURE(source.width, source.height, target.width, target.height, width, height, static_cast<int>(filter));
    REQUIRE(planner.add({.file_untrusted = pixels,
                         .crop = {0, 0, source.width, source.height},
                         .resized = target,
                         .window = window,
                         .kind = hls::Source::kRows,
                         .stored = source}) == "");
  }
  CHECK(roomy > 0);
  CHECK(not_roomy > 0);
}

}  // namespace
}  // namespace millrace
