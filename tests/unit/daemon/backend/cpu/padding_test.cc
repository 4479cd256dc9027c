// Padding in the CPU backend's hands: what is shown of an image beyond its sides, for every mode, place and kind of tensor.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

constexpr RandomKey kPaddingKey{.seed = 5, .epoch = 1, .sample = SampleId{12}};
constexpr Size kSource{60, 50};

SampleGeometry drawn(const Recipe& recipe, RandomKey key = kPaddingKey) {
  const EncodedImage image = image_of(ImageFormat::kJpeg, kSource.width, kSource.height);
  const Result<SampleGeometry> geometry = draw_geometry(recipe, {}, image.info, key, 65'535);
  REQUIRE(geometry);
  return *geometry;
}

std::vector<std::byte> make_padded(const Recipe& recipe, const SampleGeometry& geometry) {
  std::vector<std::byte> bytes(image_bytes(recipe, geometry.output()).count, std::byte{0xA5});
  const SampleTask task{
      0, image_of(ImageFormat::kJpeg, kSource.width, kSource.height), geometry, in_host_memory(bytes), {}};
  ImageWorkspace workspace;
  const SampleOutcome outcome = make_image(task, recipe, {}, workspace);
  REQUIRE_FALSE(outcome.error);
  return bytes;
}

// Which of `count` pixels stands `by` pixels beyond its first one, counted step by step; -1: the fill.
int stands(int by, int count, Pad::Mode mode) {
  if (mode == Pad::Mode::kConstant) return by >= 0 && by < count ? by : -1;
  if (mode == Pad::Mode::kEdge) return std::max(0, std::min(by, count - 1));
  int at = 0, step = 1;  // walks to and fro
  const bool repeats = mode == Pad::Mode::kSymmetric;
  for (int i = 0; i < std::abs(by); ++i) {
    if (i == 0 && by < 0) {
      step = 1;
      if (repeats) continue;  // the first one again
    }
    const int next = at + step;
    if (next >= 0 && next < count) {
      at = next;
    } else {
      step = -step;
      if (!repeats) at = count == 1 ? 0 : at + step;
    }
  }
  return at;
}

TEST_CASE("what is shown beyond an image's sides is what the mode says, in every direction and however far",
          "[backend]") {
  const auto mode = GENERATE(Pad::Mode::kConstant, Pad::Mode::kEdge, Pad::Mode::kReflect, Pad::Mode::kSymmetric);
  const auto flip = GENERATE(0.0F, 1.0F);
  const Size size = GENERATE(Size{20, 16}, Size{1, 3});
  const Recipe plain{.resize = ExactSize{size}, .layout = Layout::kNhwc};
  Recipe recipe = plain;
  recipe.flip_probability = flip;
  recipe.pad = Pad{.left = 5, .top = 41, .right = 70, .bottom = 2, .mode = mode, .fill = {9, 8, 7}};
  const std::vector<std::byte> all = make_padded(plain, drawn(plain));
  const SampleGeometry geometry = drawn(recipe);
  REQUIRE(geometry.output() == Size{size.width + 75, size.height + 43});

  const std::vector<std::byte> padded = make_padded(recipe, geometry);

  const int width = static_cast<int>(size.width), height = static_cast<int>(size.height);
  const int out_width = width + 75, out_height = height + 43;
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x) {
      const int shown = flip > 0 ? out_width - 1 - x : x;
      const int from_x = stands(shown - 5, width, mode), from_y = stands(y - 41, height, mode);
      for (int c = 0; c < 3; ++c) {
        const auto at = static_cast<std::size_t>((y * out_width + x) * 3 + c);
        const std::byte wanted = from_x < 0 || from_y < 0
                                     ? std::byte(recipe.pad->fill[static_cast<std::size_t>(c)])
                                     : all[static_cast<std::size_t>((from_y * width + from_x) * 3 + c)];
        INFO(x << "," << y << " of mode " << static_cast<int>(mode));
        REQUIRE(padded[at] == wanted);
      }
    }
  }
}

TEST_CASE("an image lies in what is added where the recipe says", "[backend]") {
  const auto canvas = [](CropPlace place, RandomKey key = kPaddingKey) {
    const Recipe recipe{.resize = LongerSide{30}, .pad = Pad{.to = Size{41, 32}, .place = place}};
    REQUIRE(fixed_size(recipe) == Size{41, 32});
    return drawn(recipe, key).shown();
  };

  CHECK(canvas(CropPlace::kCentre) == Box{-5, -3, 41, 32});  // of 30 x 25
  CHECK(canvas(CropPlace::kTopLeft) == Box{0, 0, 41, 32});
  CHECK(canvas(CropPlace::kTopRight) == Box{-11, 0, 41, 32});
  CHECK(canvas(CropPlace::kBottomLeft) == Box{0, -7, 41, 32});
  CHECK(canvas(CropPlace::kBottomRight) == Box{-11, -7, 41, 32});
  bool differs = false;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Box box = canvas(CropPlace::kRandom, {.sample = SampleId{i}});
    REQUIRE((box.left >= -11 && box.left <= 0 && box.top >= -7 && box.top <= 0));
    differs = differs || !(box == canvas(CropPlace::kRandom));
  }
  CHECK(differs);
}

TEST_CASE("a crop of what is padded is padded only where it reaches beyond the image", "[backend]") {
  Recipe recipe{.resize = ExactSize{{32, 32}},
                .centre_crop = Size{32, 32},
                .layout = Layout::kNhwc,
                .crop_place = CropPlace::kRandom,
                .pad = Pad{.left = 4, .top = 4, .right = 4, .bottom = 4, .fill = {1, 2, 3}}};
  Recipe whole = recipe;
  whole.centre_crop.reset();
  whole.crop_place = CropPlace::kCentre;
  const std::vector<std::byte> all = make_padded(whole, drawn(whole));  // 40 x 40
  int inside = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const SampleGeometry geometry = drawn(recipe, {.sample = SampleId{i}});
    REQUIRE(geometry.output() == Size{32, 32});
    const std::vector<std::byte> made = make_padded(recipe, geometry);
    const Box shown = geometry.shown();
    inside += geometry.canvas ? 0 : 1;
    for (int y = 0; y < 32; ++y) {
      const auto row = static_cast<std::ptrdiff_t>(((y + shown.top + 4) * 40 + shown.left + 4) * 3);
      REQUIRE(std::equal(made.begin() + y * 96, made.begin() + (y + 1) * 96, all.begin() + row));
    }
  }
  CHECK(inside > 0);  // 1 in 81
}

TEST_CASE("a crop that shows nothing of the image is all fill", "[backend]") {
  const Recipe recipe{.resize = ExactSize{{20, 16}},
                      .centre_crop = Size{8, 8},
                      .layout = Layout::kNhwc,
                      .crop_place = CropPlace::kTopLeft,
                      .pad = Pad{.left = 30, .top = 2, .fill = {1, 2, 3}}};

  const std::vector<std::byte> made = make_padded(recipe, drawn(recipe));

  for (std::size_t i = 0; i < made.size(); ++i) REQUIRE(made[i] == std::byte(i % 3 + 1));
}

TEST_CASE("steps are done to what is padded, and normalisation to its fill", "[backend]") {
  Recipe recipe{.resize = ExactSize{{20, 16}}, .layout = Layout::kNhwc, .pad = Pad{.left = 3, .fill = {10, 20, 30}}};
  recipe.steps = {{.kind = steps::Simple::kInvert}};
  const std::vector<std::byte> made = make_padded(recipe, drawn(recipe));
  REQUIRE(made[0] == std::byte{245});
  REQUIRE(made[2] == std::byte{225});

  const Recipe floats = recipe.normalised(DType::kFloat32, {{0, 0, 0}, {1, 1, 1}});
  const std::vector<std::byte> normalised = make_padded(floats, drawn(floats));
  float first = 0;
  std::memcpy(&first, normalised.data(), sizeof first);
  REQUIRE(first == 245.0F / 255.0F);
}

TEST_CASE("a jittered scale and a random shorter side are drawn for each sample", "[backend]") {
  const Recipe jitter{.resize = ScaleJitter{{100, 100}, {0.5F, 1.5F}}, .packing = Packing::kPacked};
  const Recipe sides{.resize = RandomShorterSide{{20, 40}, 45}, .packing = Packing::kPacked};
  std::vector<std::uint32_t> widths, heights;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Size of_jitter = drawn(jitter, {.sample = SampleId{i}}).resized;  // of 60 x 50
    CHECK((of_jitter.width >= 50 && of_jitter.width < 150));
    CHECK(std::abs(static_cast<double>(of_jitter.width) / 60 - static_cast<double>(of_jitter.height) / 50) < 0.02);
    const Size of_sides = drawn(sides, {.sample = SampleId{i}}).resized;
    CHECK((of_sides == Size{24, 20} || of_sides == Size{45, 37}));
    widths.push_back(of_jitter.width);
    heights.push_back(of_sides.height);
  }
  CHECK(std::count(heights.begin(), heights.end(), 20U) > 20);
  CHECK(std::count(heights.begin(), heights.end(), 37U) > 20);
  CHECK(*std::min_element(widths.begin(), widths.end()) < 65);
  CHECK(*std::max_element(widths.begin(), widths.end()) > 135);
}

TEST_CASE("of several filters one is drawn and used", "[backend]") {
  Recipe either{.resize = ExactSize{{20, 16}}, .random_filters = {Filter::kBilinear, Filter::kBicubic}};
  Recipe bilinear{.resize = ExactSize{{20, 16}}}, bicubic = bilinear;
  bicubic.filter = Filter::kBicubic;
  int bicubics = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const SampleGeometry geometry = drawn(either, {.sample = SampleId{i}});
    const bool is_bicubic = geometry.filter == Filter::kBicubic;
    bicubics += is_bicubic ? 1 : 0;
    const Recipe& alone = is_bicubic ? bicubic : bilinear;
    REQUIRE(make_padded(either, geometry) == make_padded(alone, drawn(alone)));
  }
  CHECK((bicubics > 10 && bicubics < 40));
}

}  // namespace
}  // namespace millrace
