#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/resample.h"
#include "kernels/cpu/workspace.h"
#include "kernels/tensor/reference.h"
#include "tests/support/host/live_bytes.h"

using namespace millrace::kernels;

namespace {

constexpr Filter kResampleFilters[] = {Filter::kNearest, Filter::kBox,     Filter::kBilinear,
                                       Filter::kHamming, Filter::kBicubic, Filter::kLanczos};

// A picture whose rows are exactly as far apart as asked and whose bytes end with its last pixel, so that a sanitizer
// sees every byte too many.
struct ResampledPicture {
  std::vector<std::uint8_t> bytes;
  MutableU8View view;

  ResampledPicture(Size size, int channels, int gap = 0) {
    const std::ptrdiff_t stride = std::ptrdiff_t{size.width} * channels + gap;
    bytes.resize(static_cast<std::size_t>(stride) * (size.height - 1) +
                 static_cast<std::size_t>(size.width) * channels);
    bytes.shrink_to_fit();
    view = {bytes.data(), size.width, size.height, channels, stride};
  }
};

// Noise, or hard edges (only 0 and 255), which make filters with negative lobes overshoot.
void paint(ResampledPicture& picture, std::mt19937& random) {
  const bool edges = random() % 2 == 0;
  for (std::uint8_t& byte : picture.bytes) byte = static_cast<std::uint8_t>(edges ? (random() % 2) * 255 : random());
}

ResampledPicture resampled(const ResampleSpec& spec, const U8View& source, Workspace& workspace) {
  ResampledPicture out({spec.window.width, spec.window.height}, spec.channels);
  resample_image(workspace.plan(spec), source, workspace, out.view);
  return out;
}

ResampledPicture expected(const ResampleSpec& spec, const U8View& source) {
  ResampledPicture out({spec.window.width, spec.window.height}, spec.channels);
  reference::resample(spec, source, out.view);
  return out;
}

std::string describe(const ResampleSpec& spec, Target target) {
  const auto text = [](int number) { return std::to_string(number); };
  return std::string(name_of(target)) + " filter " + text(static_cast<int>(spec.filter)) + " channels " +
         text(spec.channels) + " " + text(spec.source.width) + "x" + text(spec.source.height) + " -> " +
         text(spec.target.width) + "x" + text(spec.target.height) + " window " + text(spec.window.left) + "," +
         text(spec.window.top) + " " + text(spec.window.width) + "x" + text(spec.window.height);
}

int pick_of(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// Small and large sides alike, so that every tail of every loop is met.
int random_resample_side(std::mt19937& random, int largest) {
  return pick_of(random, 1, pick_of(random, 1, largest));
}

Box random_window(std::mt19937& random, Size target) {
  if (random() % 2 == 0) return whole(target);
  const int width = pick_of(random, 1, target.width);
  const int height = pick_of(random, 1, target.height);
  return {pick_of(random, 0, target.width - width), pick_of(random, 0, target.height - height), width, height};
}

ResampleSpec random_spec(std::mt19937& random, int largest) {
  constexpr int kChannels[] = {1, 3, 4};
  ResampleSpec spec;
  spec.channels = kChannels[random() % 3];
  spec.source = {random_resample_side(random, largest), random_resample_side(random, largest)};
  spec.target = {random_resample_side(random, largest), random_resample_side(random, largest)};
  if (random() % 8 == 0) spec.target.width = spec.source.width;
  if (random() % 8 == 0) spec.target.height = spec.source.height;
  spec.window = random_window(random, spec.target);
  spec.filter = kResampleFilters[random() % 6];
  if (random() % 4 == 0) spec.order = PassOrder::kColumnsFirst;
  return spec;
}

void require_equal_on_every_target(std::mt19937& random, int rounds, int largest) {
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (const Target target : available_targets()) workspaces.push_back(std::make_unique<Workspace>(target));
  for (int round = 0; round < rounds; ++round) {
    const ResampleSpec spec = random_spec(random, largest);
    ResampledPicture source(spec.source, spec.channels, pick_of(random, 0, 5));
    paint(source, random);
    const ResampledPicture slow = expected(spec, source.view);
    for (const auto& workspace : workspaces) {
      const ResampledPicture fast = resampled(spec, source.view, *workspace);
      if (fast.bytes != slow.bytes) FAIL(describe(spec, workspace->target()));
    }
  }
}

}  // namespace

TEST_CASE("resampling stops soon after its time is over, and says so; the next picture has its own time",
          "[kernels][resample]") {
  ResampledPicture source({64, 64}, 3), out({2'000, 2'000}, 3);
  for (const Filter filter : kResampleFilters) {
    Workspace workspace;
    const ResampleSpec spec{
        .source = {64, 64}, .target = {2'000, 2'000}, .window = whole({2'000, 2'000}), .filter = filter};
    int rows = 0;
    const auto count = [&](int, const std::uint8_t*) { ++rows; };

    workspace.limit().set(TimeLimit::Clock::now() - std::chrono::seconds(1));
    const bool late = resample(workspace.plan(spec), source.view, workspace, count);
    const int made = std::exchange(rows, 0);
    workspace.limit().set(TimeLimit::Clock::time_point::max());
    const bool in_time = resample(workspace.plan(spec), source.view, workspace, count);

    INFO("filter " << static_cast<int>(filter));
    CHECK_FALSE(late);
    CHECK(made <= 20);
    CHECK(in_time);
    CHECK(rows == 2'000);
  }
}

TEST_CASE("small pictures resample as the definition says on every target", "[kernels][resample]") {
  std::mt19937 random(1);

  require_equal_on_every_target(random, 4000, 40);

  SUCCEED();
}

TEST_CASE("pictures of up to 600x600 resample as the definition says on every target", "[kernels][resample]") {
  std::mt19937 random(2);

  require_equal_on_every_target(random, 120, 600);

  SUCCEED();
}

TEST_CASE("steep shrinking, with hundreds of taps, resamples as the definition says", "[kernels][resample]") {
  std::mt19937 random(3);
  for (const Target target : available_targets()) {
    Workspace workspace(target);
    for (const Filter filter : kResampleFilters) {
      for (const int channels : {1, 3, 4}) {
        const ResampleSpec spec{channels, {1500, 70}, {7, 3}, {1, 0, 5, 2}, filter};
        ResampledPicture source(spec.source, channels);
        paint(source, random);

        const ResampledPicture fast = resampled(spec, source.view, workspace);

        INFO(describe(spec, target));
        REQUIRE(fast.bytes == expected(spec, source.view).bytes);
      }
    }
  }
}

TEST_CASE("a crop of a larger picture is resampled as if nothing were around it", "[kernels][resample]") {
  std::mt19937 random(4);
  ResampledPicture large({120, 90}, 3);
  paint(large, random);
  const Box box{17, 9, 60, 50};
  const ResampleSpec spec{3, {60, 50}, {24, 31}, whole({24, 31}), Filter::kBicubic};
  ResampledPicture cropped({60, 50}, 3);
  for (int y = 0; y < 50; ++y) std::memcpy(cropped.view.row(y), large.view.row(9 + y) + 17 * 3, 60 * 3);
  Workspace workspace;

  const ResampledPicture from_view = resampled(spec, U8View(large.view).crop(box), workspace);

  REQUIRE(from_view.bytes == expected(spec, cropped.view).bytes);
}

TEST_CASE("only the source that needed_source names is read", "[kernels][resample]") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const ResampleSpec spec = random_spec(random, 120);
    ResampledPicture full(spec.source, spec.channels);
    paint(full, random);
    Workspace workspace;
    const Box needed = needed_source(workspace.plan(spec));
    ResampledPicture partial(spec.source, spec.channels);
    std::fill(partial.bytes.begin(), partial.bytes.end(), std::uint8_t{0xA5});
    for (int y = needed.top; y < needed.top + needed.height; ++y) {
      const std::ptrdiff_t at = std::ptrdiff_t{needed.left} * spec.channels;
      std::memcpy(partial.view.row(y) + at, full.view.row(y) + at,
                  static_cast<std::size_t>(needed.width) * spec.channels);
    }

    const bool equal = resampled(spec, partial.view, workspace).bytes == resampled(spec, full.view, workspace).bytes;

    INFO(describe(spec, workspace.target()));
    REQUIRE(equal);
  }
}

TEST_CASE("rows reach the sink once each, from the top", "[kernels][resample]") {
  std::mt19937 random(6);
  for (const Filter filter : kResampleFilters) {
    const ResampleSpec spec{3, {50, 40}, {20, 70}, {3, 5, 10, 33}, filter};
    ResampledPicture source(spec.source, 3);
    paint(source, random);
    Workspace workspace;
    std::vector<int> seen;

    resample(workspace.plan(spec), source.view, workspace, [&](int y, const std::uint8_t*) { seen.push_back(y); });

    REQUIRE(seen.size() == 33);
    for (int y = 0; y < 33; ++y) REQUIRE(seen[y] == y);
  }
}

TEST_CASE("a flat picture stays flat whatever the filter", "[kernels][resample]") {
  for (const Target target : available_targets()) {
    for (const Filter filter : kResampleFilters) {
      const ResampleSpec spec{3, {97, 61}, {40, 133}, whole({40, 133}), filter};
      ResampledPicture source(spec.source, 3);
      std::fill(source.bytes.begin(), source.bytes.end(), std::uint8_t{200});
      Workspace workspace(target);

      const ResampledPicture out = resampled(spec, source.view, workspace);

      INFO(describe(spec, target));
      REQUIRE(std::all_of(out.bytes.begin(), out.bytes.end(), [](std::uint8_t byte) { return byte == 200; }));
    }
  }
}

TEST_CASE("the workspace keeps tables up to its budget, and not many more", "[kernels][resample]") {
  constexpr std::size_t kBudget = std::size_t{64} << 10;
  std::mt19937 random(8);
  Workspace workspace(best_target(), kBudget);
  const std::size_t before = live_bytes();
  std::size_t most = 0;

  for (int width = 100; width < 400; ++width) {
    const ResampleSpec spec{3, {width, 50}, {96, 20}, whole({96, 20}), Filter::kBilinear};
    {
      ResampledPicture source(spec.source, 3);
      paint(source, random);
      const bool equal = resampled(spec, source.view, workspace).bytes == expected(spec, source.view).bytes;
      if (!equal) FAIL(describe(spec, workspace.target()));
    }
    most = std::max(most, live_bytes() - before);
  }

  REQUIRE(most > kBudget);
  REQUIRE(most < 4 * kBudget);
}
