// Several views of one decode: each is, to the bit, what a recipe of its own makes of the sample with the same draws.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>
#include <vector>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/formats/decoding_memory.h"
#include "daemon/place/expected_cost.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

constexpr RandomKey kViewsKey{.seed = 5, .epoch = 1, .sample = SampleId{12}};

// Two large views, three small ones, the middle, and all of it.
Recipe several(DType dtype = DType::kUint8) {
  Recipe global{.crop = RandomResizedCrop{0.4F, 1.0F},
                .resize = ExactSize{{56, 48}},
                .filter = Filter::kBicubic,
                .flip_probability = 0.5F};
  global.steps = {
      {.probability = 0.8F, .kind = steps::ColorJitter{Interval{0.6F, 1.4F}, {}, {}, Interval{-0.1F, 0.1F}}},
      {.kind = steps::GaussianBlur{9, {0.1F, 2}}}};
  Recipe local{.crop = RandomResizedCrop{0.05F, 0.4F}, .resize = ExactSize{{24, 24}}, .flip_probability = 0.5F};
  local.erasing = Erasing{.probability = 0.7F, .value = {1, 0, 1}};
  const Recipe middle{.resize = ShorterSide{40}, .centre_crop = Size{32, 32}, .crop_place = CropPlace::kBottomLeft};
  const Recipe whole{.resize = ExactSize{{60, 45}}, .filter = Filter::kNearest};
  Recipe recipe = Recipe::of_views({global, global, local, local, local, middle, whole});
  recipe.channels = Channels::kBgr;
  for (Recipe& view : recipe.views) view.channels = Channels::kBgr;
  return dtype == DType::kUint8 ? recipe : recipe.normalised(dtype);
}

SampleGeometry drawn(const Recipe& recipe, const SourceInfo& source, RandomKey key = kViewsKey) {
  const Result<SampleGeometry> geometry = draw_geometry(recipe, {}, source, key, 65'535);
  REQUIRE(geometry);
  return *geometry;
}

struct ViewsMade {
  SampleOutcome outcome;
  std::vector<std::vector<std::byte>> views;
};

ViewsMade make_views(const Recipe& recipe, EncodedImage image, const SampleGeometry& geometry,
                     Fidelity fidelity = Fidelity::kExact, SampleLimits limits = {}) {
  ViewsMade made;
  for (std::size_t i = 0; i < views_of(recipe).size(); ++i)
    made.views.emplace_back(image_bytes(views_of(recipe)[i], views_of(geometry)[i].output()).count, std::byte{0xA5});
  SampleTask task{0, std::move(image), geometry, in_host_memory(made.views[0]), {}};
  for (std::size_t i = 1; i < made.views.size(); ++i) task.further_outs.push_back(in_host_memory(made.views[i]));
  ImageWorkspace workspace;
  made.outcome = make_image(task, recipe, limits, workspace, fidelity);
  return made;
}

TEST_CASE("each view is what a recipe of its own makes with the same draws, of every format", "[backend]") {
  for (const ImageFormat format : all_formats()) {
    for (const int orientation : {1, 6}) {
      for (const DType dtype : {DType::kUint8, DType::kFloat16}) {
        const Recipe recipe = several(dtype);
        EncodedImage image = image_of(format, 150, 120);
        if (format == ImageFormat::kJpeg) image.info.orientation = static_cast<std::uint8_t>(orientation);
        const SampleGeometry geometry = drawn(recipe, image.info);

        const SourceInfo info = image.info;

        const ViewsMade together = make_views(recipe, std::move(image), geometry);

        INFO("format " << static_cast<int>(format) << ", orientation " << orientation);
        REQUIRE_FALSE(together.outcome.error);
        for (std::size_t i = 0; i < recipe.views.size(); ++i) {
          EncodedImage alone = image_of(format, 150, 120);
          alone.info = info;
          const ViewsMade one = make_views(recipe.views[i], std::move(alone), geometry.views[i]);
          INFO("view " << i);
          REQUIRE_FALSE(one.outcome.error);
          REQUIRE(one.views[0] == together.views[i]);
        }
      }
    }
  }
}

TEST_CASE("views of fidelity fast are within the bound of exact ones", "[backend]") {
  const Recipe recipe = several();
  const SampleGeometry geometry = drawn(recipe, image_of(ImageFormat::kJpeg, 150, 120).info);

  const ViewsMade exact = make_views(recipe, image_of(ImageFormat::kJpeg, 150, 120), geometry);
  const ViewsMade fast = make_views(recipe, image_of(ImageFormat::kJpeg, 150, 120), geometry, Fidelity::kFast);

  REQUIRE_FALSE(fast.outcome.error);
  const std::size_t middle = 5;  // without steps, which may carry a level far
  for (std::size_t i = 0; i < exact.views[middle].size(); ++i) {
    const int difference = static_cast<int>(exact.views[middle][i]) - static_cast<int>(fast.views[middle][i]);
    REQUIRE(std::abs(difference) <= 64);
  }
}

TEST_CASE("the first view draws what a recipe without views draws, and the others something else", "[backend]") {
  const Recipe recipe = several();
  const SourceInfo source{.stored = {640, 480}};

  const SampleGeometry geometry = drawn(recipe, source);

  REQUIRE(geometry.views[0] == drawn(recipe.views[0], source));
  REQUIRE_FALSE(geometry.views[1].crop == geometry.views[0].crop);
  REQUIRE(geometry.views[1].draws->view == 1);
  for (const SampleGeometry& view : geometry.views) {
    CHECK(view.crop.left >= geometry.crop.left);
    CHECK(view.crop.top >= geometry.crop.top);
    CHECK(view.crop.left + view.crop.width <= geometry.crop.left + geometry.crop.width);
    CHECK(view.crop.top + view.crop.height <= geometry.crop.top + geometry.crop.height);
  }
}

TEST_CASE("views cost together what their outputs cost, and take the memory of the one that takes most", "[backend]") {
  const Recipe recipe = several();
  const EncodedImage image = image_of(ImageFormat::kJpeg, 150, 120);
  const SampleGeometry all = drawn(recipe, image.info);
  SampleGeometry one = all;
  one.views.resize(1);

  REQUIRE(expected_cost(image, all) > expected_cost(image, one));
  REQUIRE(decoding_memory(image.info, all).at_most >= decoding_memory(image.info, one).at_most);
}

TEST_CASE("a sample of which not every view has its place is refused", "[backend]") {
  const Recipe recipe = several();
  EncodedImage image = image_of(ImageFormat::kJpeg, 150, 120);
  const SampleGeometry geometry = drawn(recipe, image.info);
  std::vector<std::byte> first(image_bytes(recipe.views[0], geometry.views[0].output()).count);
  const SampleTask task{0, std::move(image), geometry, in_host_memory(first), {}};
  ImageWorkspace workspace;

  const SampleOutcome outcome = make_image(task, recipe, {}, workspace);

  REQUIRE(outcome.error);
  REQUIRE(outcome.error->code == Code::kInternal);
}

TEST_CASE("the time limit holds for all views together", "[backend]") {
  const Recipe recipe = several();
  EncodedImage image = image_of(ImageFormat::kPng, 150, 120);
  const SampleGeometry geometry = drawn(recipe, image.info);

  const ViewsMade made =
      make_views(recipe, std::move(image), geometry, Fidelity::kExact, {.time = std::chrono::milliseconds(0)});

  REQUIRE(made.outcome.error);
  REQUIRE(made.outcome.error->code == Code::kDeadline);
}

}  // namespace
}  // namespace millrace
