// What all backends translate and check alike.
#include "daemon/backend/words.h"

#include <catch2/catch.hpp>

#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

// A task that is in order: a 40x30 picture, turned, of which 20x10 become 8x4.
struct Task {
  Recipe recipe;
  JobOnTheBench bench{recipe};
  SampleTask& task = (bench.add(encoded(std::vector<std::byte>(1), ImageFormat::kJpeg, {30, 40}, 6),
                                {.crop = {20, 20, 20, 10}, .resized = {8, 4}, .window = {0, 0, 8, 4}}),
                      bench.tasks[0]);

  std::string complaint(const SampleLimits& limits = {}) const {
    const Result<void> checked = check_task(task, recipe, limits);
    return checked ? "" : checked.error().message;
  }
};

TEST_CASE("a recipe's stored form is said in the kernels' words, field by field", "[backend]") {
  const Recipe recipe{.normalise = Normalise{{1, 2, 3}, {4, 5, 6}},
                      .range = ValueRange::kRaw,
                      .dtype = DType::kBfloat16,
                      .layout = Layout::kNhwc,
                      .channels = Channels::kBgr,
                      .patches = Patches{{14, 16}, 2, 3}};

  const kernels::StoreSpec spec = store_spec(recipe);

  REQUIRE(spec == kernels::StoreSpec{.dtype = kernels::DType::kBfloat16,
                                     .layout = kernels::Layout::kNhwc,
                                     .channels = kernels::ChannelOrder::kBgr,
                                     .range = kernels::ValueRange::kRaw,
                                     .normalise = kernels::Normalise{{1, 2, 3}, {4, 5, 6}},
                                     .patches = kernels::Patches{14, 16, 2, 3}});
  REQUIRE(store_spec({}) == kernels::StoreSpec{});
}

TEST_CASE("a sample's geometry is said in the kernels' words, field by field", "[backend]") {
  const SampleGeometry geometry{.crop = {1, 2, 30, 40}, .resized = {20, 10}, .window = {3, 4, 5, 6}, .flip = true};

  const kernels::ResampleSpec spec = resample_spec(geometry, {.filter = Filter::kHamming}, 1);

  REQUIRE(spec == kernels::ResampleSpec{.channels = 1,
                                        .source = {30, 40},
                                        .target = {20, 10},
                                        .window = {3, 4, 5, 6},
                                        .filter = kernels::Filter::kHamming});
  REQUIRE(flip_of(geometry) == kernels::Flip::kHorizontal);
  REQUIRE(flip_of({}) == kernels::Flip::kNone);
}

TEST_CASE("a task that is in order passes, and boxes count in the upright picture", "[backend]") {
  Task good;

  REQUIRE(good.complaint() == "");
  REQUIRE(good.complaint({.pixels = 1199}).find("over the limits") != std::string::npos);
  REQUIRE(good.complaint({.side = 39}).find("over the limits") != std::string::npos);
}

TEST_CASE("whatever of a task contradicts the rest is named", "[backend]") {
  Task crop, window, patches, size;
  crop.task.geometry.crop.left = 21;
  window.task.geometry.window.top = 1;
  patches.recipe.patches = Patches{{3, 4}};
  size.recipe.dtype = DType::kFloat16;

  REQUIRE(crop.complaint() == "the crop lies outside the image");
  REQUIRE(window.complaint() == "the window lies outside the resized image");
  REQUIRE(patches.complaint() == "the image does not divide into the recipe's patches");
  REQUIRE(size.complaint() == "the place for the image has another size than the image");
}

TEST_CASE("a processor writes where there is a host address, aligned to the elements", "[backend]") {
  Task host, device, odd;
  device.task.out.host = nullptr;
  ++odd.task.out.host;

  REQUIRE(check_on_host(host.task, {.dtype = DType::kFloat32}));
  REQUIRE(check_on_host(device.task, {}).error().code == Code::kUnsupported);
  REQUIRE(check_on_host(odd.task, {}));
  REQUIRE(check_on_host(odd.task, {.dtype = DType::kFloat16}).error().code == Code::kInternal);
}

}  // namespace
}  // namespace millrace
