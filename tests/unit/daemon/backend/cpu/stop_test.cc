// What becomes of a sample that nobody wants any more while it is made.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <optional>
#include <vector>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/touch_trap.h"

namespace millrace {
namespace {

constexpr std::byte kUnwritten{0xA5};

using Tensor = std::vector<std::byte>;

bool is_written(std::byte byte) {
  return byte != kUnwritten;
}

// The views of one sample, of which another thread wants no more as soon as a page in `trapped` is written.
SampleOutcome make_until(const Recipe& recipe, EncodedImage image, Fidelity fidelity, std::vector<Tensor>& views,
                         MutableByteView (*trapped)(std::vector<Tensor>&)) {
  const SampleGeometry geometry = *draw_geometry(recipe, {}, image.info, {}, 65'535);
  for (std::size_t i = 0; i < views_of(recipe).size(); ++i)
    views.emplace_back(image_bytes(views_of(recipe)[i], views_of(geometry)[i].output()).count, kUnwritten);
  SampleTask task{0, std::move(image), geometry, in_host_memory(views[0]), {}};
  for (std::size_t i = 1; i < views.size(); ++i) task.further_outs.push_back(in_host_memory(views[i]));
  ImageWorkspace workspace;
  StopFlag stop;
  TouchTrap trap(trapped(views), TouchTrap::Then::kWaits);
  std::future<SampleOutcome> made =
      std::async(std::launch::async, [&] { return make_image(task, recipe, {}, workspace, fidelity, stop); });
  const bool is_at_it = eventually([&] { return !trap.touched_by().empty(); });
  stop.stop();
  trap.let_go();
  SampleOutcome outcome = made.get();
  REQUIRE(is_at_it);
  return outcome;
}

}  // namespace

TEST_CASE("of a sample that is stopped while a view is made, no further view is", "[backend]") {
  Recipe view{.crop = RandomResizedCrop{}, .resize = ExactSize{{64, 64}}};
  view.steps = {{.kind = steps::GaussianBlur{9, {0.5F, 2}}}};
  const Recipe recipe = Recipe::of_views(std::vector<Recipe>(Recipe::kMostViews, view));
  for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kPng}) {
    for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
      CAPTURE(static_cast<int>(format), static_cast<int>(fidelity));
      std::vector<Tensor> views;

      const SampleOutcome outcome = make_until(recipe, image_of(format, 150, 120), fidelity, views,
                                               [](std::vector<Tensor>& all) { return MutableByteView(all[5]); });

      REQUIRE(outcome.error);
      REQUIRE(outcome.error->code == Code::kCancelled);
      const auto written = std::count_if(views.begin(), views.end(), [](const Tensor& tensor) {
        return std::any_of(tensor.begin(), tensor.end(), is_written);
      });
      REQUIRE(written == 6);
    }
  }
}

TEST_CASE("a large output is not written on once its sample is stopped", "[backend]") {
  constexpr std::uint32_t kLargeSide = 1'500;
  Recipe plain{.resize = ExactSize{{kLargeSide, kLargeSide}}};
  plain.layout = Layout::kNhwc;
  Recipe stepped = plain;
  stepped.steps = {{.kind = steps::Simple::kInvert}};
  for (const Recipe& recipe : {plain, stepped}) {
    for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kPng}) {
      for (const Fidelity fidelity : {Fidelity::kExact, Fidelity::kFast}) {
        CAPTURE(recipe.steps.size(), static_cast<int>(format), static_cast<int>(fidelity));
        std::vector<Tensor> views;

        const SampleOutcome outcome =
            make_until(recipe, image_of(format, 100, 100), fidelity, views, [](std::vector<Tensor>& all) {
              return MutableByteView(all[0]).subspan(all[0].size() / 4, 2 * TouchTrap::kPage);
            });

        REQUIRE(outcome.error);
        REQUIRE(outcome.error->code == Code::kCancelled);
        const auto middle = views[0].begin() + static_cast<std::ptrdiff_t>(views[0].size() / 2);
        REQUIRE(std::none_of(middle, views[0].end(), is_written));
      }
    }
  }
}

TEST_CASE("each decoder gives up what nobody wants, as it does at its deadline", "[backend]") {
  const std::atomic<bool> unwanted{true};
  for (const FormatDecoder& row : kDecoders) {
    if (!check_decoder(row.format)) continue;
    CAPTURE(static_cast<int>(row.format));
    const EncodedImage image = image_of(row.format, 600, 400);
    const kernels::Size size = in_kernels(image.info.stored);
    const auto decoded = [&](const kernels::Deadline& deadline) {
      PixelBuffer buffer;
      const auto pixels = row.decode({image.bytes.view(), size, kernels::whole(size), deadline}, buffer);
      return pixels ? std::optional<Code>() : pixels.error().code;
    };

    CHECK_FALSE(decoded({}));
    CHECK(decoded(Clock::now() - std::chrono::seconds(1)) == Code::kDeadline);
    CHECK(decoded({Clock::time_point::max(), &unwanted}) == Code::kDeadline);
  }
}

}  // namespace millrace
