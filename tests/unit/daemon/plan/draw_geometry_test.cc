#include <catch2/catch.hpp>
#include <limits>

#include "daemon/plan/draw_geometry.h"

namespace millrace {
namespace {

constexpr std::uint32_t kMaxSide = 65'535;

SourceInfo source_of(std::uint32_t width, std::uint32_t height, std::uint8_t orientation = 1) {
  return {.stored = {width, height}, .orientation = orientation};
}

SampleGeometry drawn(const Recipe& recipe, const SourceInfo& source, RandomKey key = {}, std::optional<Box> box = {}) {
  Result<SampleGeometry> geometry = draw_geometry(recipe, {.box = box}, source, key, kMaxSide);
  REQUIRE(geometry.has_value());
  return *geometry;
}

std::string refused(const Recipe& recipe, const SourceInfo& source, std::optional<Box> box = {}) {
  const Result<SampleGeometry> geometry = draw_geometry(recipe, {.box = box}, source, {}, kMaxSide);
  REQUIRE_FALSE(geometry.has_value());
  REQUIRE(geometry.error().code == Code::kInvalid);
  return geometry.error().message;
}

Size resized(Resize resize, std::uint32_t width, std::uint32_t height) {
  return drawn({.resize = resize}, source_of(width, height)).resized;
}

Box centre(std::uint32_t size, std::uint32_t width, std::uint32_t height) {
  return drawn({.crop = CentreCrop{{size, size}}}, source_of(width, height)).crop;
}

// Boxes and flips from a second implementation, in Python after torchvision's get_params(): a change breaks everybody's
// reproducibility.
TEST_CASE("the first random boxes and flips stay what they were", "[plan]") {
  const Recipe recipe{.crop = RandomResizedCrop{}, .resize = ExactSize{{224, 224}}, .flip_probability = 0.5F};
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  struct Row {
    Size image;
    RandomKey key;
    Box box;
    bool flip;
  };
  const Row rows[] = {
      {{500, 375}, {0, 0, SampleId{0}}, {62, 34, 353, 314}, false},
      {{500, 375}, {0, 0, SampleId{1}}, {127, 21, 309, 311}, true},
      {{500, 375}, {0, 1, SampleId{0}}, {57, 30, 252, 325}, false},
      {{500, 375}, {9, 0, SampleId{0}}, {46, 2, 232, 244}, false},
      {{64, 4000}, {3, 2, SampleId{1}}, {0, 1957, 64, 85}, true},  // the fallback: as tall as 3/4 allows
      {{3000, 20}, {3, 2, SampleId{1}}, {1486, 0, 27, 20}, true},  // the fallback: as wide as 4/3 allows
      {{1, 1}, {5, 5, SampleId{5}}, {0, 0, 1, 1}, true},
      {{333, 500}, {kMost, kMost, SampleId{kMost}}, {159, 226, 146, 170}, false},
  };

  for (const Row& row : rows) {
    const SampleGeometry geometry = drawn(recipe, source_of(row.image.width, row.image.height), row.key);
    REQUIRE(geometry.crop == row.box);
    REQUIRE(geometry.flip == row.flip);
    REQUIRE(geometry.resized == Size{224, 224});
    REQUIRE(geometry.window == Box{0, 0, 224, 224});
  }
}

TEST_CASE("a recipe with steps says what they are drawn from, and what they will cost", "[plan]") {
  const RandomKey key{3, 4, SampleId{5}};
  const Recipe plain{.resize = ExactSize{{32, 32}}};
  Recipe cheap = plain, costly = plain, erasing = plain;
  cheap.steps = {{.kind = steps::Simple::kInvert}};
  costly.steps = std::vector<Step>(64, {.kind = steps::GaussianBlur{99, {1, 2}}});
  erasing.erasing = Erasing{.noise = Erasing::Noise::kPixel};

  REQUIRE_FALSE(drawn(plain, source_of(40, 30), key).draws);
  REQUIRE(drawn(plain, source_of(40, 30), key).step_pixel_ps == 0);
  REQUIRE(drawn(cheap, source_of(40, 30), key).draws == key);
  REQUIRE(drawn(erasing, source_of(40, 30), key).draws == key);
  const std::uint64_t invert = drawn(cheap, source_of(40, 30), key).step_pixel_ps;
  REQUIRE(invert > 0);
  REQUIRE(drawn(erasing, source_of(40, 30), key).step_pixel_ps > 0);
  REQUIRE(drawn(costly, source_of(40, 30), key).step_pixel_ps > 1'000 * invert);
}

TEST_CASE("random boxes lie within the image and keep to scale and ratio", "[plan]") {
  const RandomResizedCrop crop{.min_scale = 0.25F, .max_scale = 0.5F, .min_ratio = 0.5F, .max_ratio = 2.0F};
  const Size image{640, 480};
  for (std::uint64_t id = 0; id < 2'000; ++id) {
    const Box box = drawn({.crop = crop}, source_of(image.width, image.height), {1, 2, SampleId{id}}).crop;

    REQUIRE((box.left >= 0 && box.top >= 0));
    REQUIRE((box.left + box.width <= 640 && box.top + box.height <= 480));
    const double share = static_cast<double>(box.width) * box.height / (640.0 * 480.0);
    const double ratio = static_cast<double>(box.width) / box.height;
    REQUIRE((share > 0.245 && share < 0.505));
    REQUIRE((ratio > 0.49 && ratio < 2.04));
  }
}

TEST_CASE("a random box is never empty, however narrow the image", "[plan]") {
  const RandomResizedCrop wide{.min_ratio = 3, .max_ratio = 4};

  const Box box = drawn({.crop = wide}, source_of(1, 1)).crop;

  REQUIRE(box == Box{0, 0, 1, 1});
}

TEST_CASE("the box is drawn in the oriented image", "[plan]") {
  const Recipe recipe{.crop = RandomResizedCrop{}};

  const SampleGeometry turned = drawn(recipe, source_of(375, 500, 6)), upright = drawn(recipe, source_of(500, 375));

  REQUIRE(turned == upright);
}

TEST_CASE("flips come with the asked probability, whatever is cropped", "[plan]") {
  int flips = 0;
  for (std::uint64_t id = 0; id < 10'000; ++id) {
    const RandomKey key{6, 0, SampleId{id}};
    const bool flip = drawn({.flip_probability = 0.25F}, source_of(10, 10), key).flip;
    REQUIRE(flip == drawn({.crop = RandomResizedCrop{}, .flip_probability = 0.25F}, source_of(90, 10), key).flip);
    flips += flip ? 1 : 0;
  }

  REQUIRE(std::abs(flips - 2'500) < 220);  // 5 standard deviations
  REQUIRE(drawn({.flip_probability = 1}, source_of(10, 10)).flip);
  REQUIRE_FALSE(drawn({}, source_of(10, 10)).flip);
}

TEST_CASE("the shorter side is exact and the longer one is truncated, as torchvision's", "[plan]") {
  REQUIRE(resized(ShorterSide{256}, 500, 375) == Size{341, 256});  // 341.33
  REQUIRE(resized(ShorterSide{256}, 375, 500) == Size{256, 341});
  REQUIRE(resized(ShorterSide{224}, 333, 500) == Size{224, 336});  // 336.34
  REQUIRE(resized(ShorterSide{256}, 256, 256) == Size{256, 256});
  REQUIRE(resized(ShorterSide{7}, 3, 5) == Size{7, 11});  // 11.67
}

TEST_CASE("the longer side is exact and the shorter one is truncated, at least 1", "[plan]") {
  REQUIRE(resized(LongerSide{256}, 500, 375) == Size{256, 192});
  REQUIRE(resized(LongerSide{100}, 333, 500) == Size{66, 100});  // 66.6
  REQUIRE(resized(LongerSide{10}, 1000, 3) == Size{10, 1});
}

TEST_CASE("the centre crop rounds half a pixel to the even side, as Python does", "[plan]") {
  REQUIRE(centre(2, 5, 7) == Box{2, 2, 2, 2});   // 1.5 and 2.5
  REQUIRE(centre(3, 10, 4) == Box{4, 0, 3, 3});  // 3.5 and 0.5
  REQUIRE(centre(4, 4, 6) == Box{0, 1, 4, 4});
}

TEST_CASE("the centre crop rounds down where the recipe says so, as transformers does", "[plan]") {
  const Recipe cropped{.crop = CentreCrop{{2, 2}}, .centre_rounding = CentreRounding::kDown};
  const Recipe window{
      .resize = ShorterSide{256}, .centre_crop = Size{224, 224}, .centre_rounding = CentreRounding::kDown};

  REQUIRE(drawn(cropped, source_of(5, 7)).crop == Box{1, 2, 2, 2});  // 1.5 and 2.5
  REQUIRE(drawn(window, source_of(500, 376)).resized == Size{340, 256});
  REQUIRE(drawn(window, source_of(501, 376)).window == Box{58, 16, 224, 224});
  REQUIRE(drawn(window, source_of(503, 376)).window == Box{59, 16, 224, 224});  // (342 - 224) / 2
}

TEST_CASE("grid cells cover the image without a gap, each beginning where the one before ends", "[plan]") {
  const auto cell = [](std::uint32_t column, std::uint32_t row) {
    return drawn({.crop = GridCell{2, 3, column, row}}, source_of(7, 11)).crop;
  };

  REQUIRE(cell(0, 0) == Box{0, 0, 3, 3});
  REQUIRE(cell(1, 0) == Box{3, 0, 4, 3});
  REQUIRE(cell(0, 1) == Box{0, 3, 3, 4});
  REQUIRE(cell(1, 2) == Box{3, 7, 4, 4});
  REQUIRE(refused({.crop = GridCell{8, 1, 0, 0}}, source_of(7, 11)) ==
          "an image of 7x11 pixels does not divide into 8x1 cells");
}

TEST_CASE("a sample's own size comes before the recipe's resize", "[plan]") {
  const Recipe recipe{.crop = CentreCrop{{50, 40}}, .resize = SmartResize{28, 3136, 1'003'520}};

  const Result<SampleGeometry> own = draw_geometry(recipe, {.size = Size{401, 2}}, source_of(100, 100), {}, kMaxSide);
  const Result<SampleGeometry> too_large =
      draw_geometry(recipe, {.size = Size{65'536, 2}}, source_of(100, 100), {}, kMaxSide);

  REQUIRE(own->crop == Box{25, 30, 50, 40});
  REQUIRE(own->resized == Size{401, 2});
  REQUIRE(too_large.error().message.find("limits.side") != std::string::npos);
}

TEST_CASE("an image that does not divide into the recipe's patches is refused with both sizes", "[plan]") {
  const Recipe recipe{.patches = Patches{.size = {14, 7}, .merge = 2}};

  REQUIRE(drawn(recipe, source_of(56, 28)).output() == Size{56, 28});
  REQUIRE(refused(recipe, source_of(56, 21))
              .find("comes out as 56x21 pixels, which do not divide into groups of "
                    "28x14") == 0);
  REQUIRE(refused(recipe, source_of(14, 28)).find("14x28") != std::string::npos);
}

TEST_CASE("a crop that a smart resize does not take is the sample's error", "[plan]") {
  REQUIRE(refused({.resize = SmartResize{28, 3136, 1'003'520}}, source_of(3, 700)).find("200 times") !=
          std::string::npos);
}

TEST_CASE("the window is the middle of the resized image", "[plan]") {
  const SampleGeometry geometry =
      drawn({.resize = ShorterSide{256}, .centre_crop = Size{224, 224}}, source_of(500, 375));

  REQUIRE(geometry.crop == Box{0, 0, 500, 375});
  REQUIRE(geometry.resized == Size{341, 256});
  REQUIRE(geometry.window == Box{58, 16, 224, 224});  // (341 - 224) / 2 = 58.5
  REQUIRE(geometry.output() == Size{224, 224});
}

TEST_CASE("a sample's own box comes before the recipe's crop", "[plan]") {
  const Recipe recipe{.crop = CentreCrop{{50, 50}}};

  REQUIRE(drawn(recipe, source_of(100, 100), {}, Box{1, 2, 3, 4}).crop == Box{1, 2, 3, 4});
  REQUIRE(drawn({.crop = BoxCrop{{90, 80, 10, 20}}}, source_of(100, 100)).crop == Box{90, 80, 10, 20});
}

TEST_CASE("a box outside the image is refused with both sizes", "[plan]") {
  const std::string expected = "the box at 10,10 of 200x100 pixels is not within the image of 150x90";

  REQUIRE(refused({}, source_of(150, 90), Box{10, 10, 200, 100}) == expected);
  REQUIRE(refused({.crop = BoxCrop{{10, 10, 200, 100}}}, source_of(150, 90)) == expected);
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const Box box : {Box{-1, 0, 5, 5}, Box{0, -1, 5, 5}, Box{0, 0, 0, 5}, Box{0, 0, 5, -5}, Box{kMost, 0, kMost, 1},
                        Box{0, kMost, 1, kMost}})
    refused({}, source_of(150, 90), box);
}

TEST_CASE("a centre crop larger than the image is refused", "[plan]") {
  REQUIRE(refused({.crop = CentreCrop{{101, 10}}}, source_of(100, 100)).find("larger than the image of 100x100") !=
          std::string::npos);
  REQUIRE(refused({.resize = LongerSide{100}, .centre_crop = Size{100, 100}}, source_of(200, 100)).find("100x50") !=
          std::string::npos);
}

TEST_CASE("an image that would be resized beyond the limit is refused", "[plan]") {
  REQUIRE(refused({.resize = ShorterSide{256}}, source_of(1, 1'000)).find("256x256000") != std::string::npos);
  REQUIRE(refused({.resize = ShorterSide{60'000}}, source_of(1, 4'000'000)).find("limits.side") != std::string::npos);
  refused({}, source_of(0, 10));
}

TEST_CASE("every image of a recipe that fixes the size comes out in that size", "[plan]") {
  const Crop crops[] = {CentreCrop{{100, 50}}, BoxCrop{{3, 5, 61, 90}}};
  const Resize resizes[] = {KeepSize{},         ShorterSide{20},        LongerSide{20},     ExactSize{{7, 9}},
                            SmartResize{4, 16}, TileGrid{{8, 6}, 2, 4}, BoundedSides{8, 80}};
  const Size images[] = {{100, 95}, {101, 2'000}, {640, 480}, {4'000, 95}};

  for (const Crop& crop : crops) {
    for (const Resize& resize : resizes) {
      const Recipe recipe{.crop = crop, .resize = resize};
      const std::optional<Size> fixed = fixed_size(recipe);
      REQUIRE(fixed);
      for (const Size image : images) {
        INFO(crop.index() << " " << resize.index() << " " << image.width << "x" << image.height);
        CHECK(drawn(recipe, source_of(image.width, image.height)).output() == *fixed);
      }
    }
  }
}

TEST_CASE("a crop after the resize is cut where the recipe says", "[plan]") {
  const auto window = [](CropPlace place, RandomKey key = {}) {
    return drawn({.resize = ExactSize{{50, 40}}, .centre_crop = Size{20, 10}, .crop_place = place}, source_of(99, 98),
                 key)
        .window;
  };

  CHECK(window(CropPlace::kCentre) == Box{15, 15, 20, 10});
  CHECK(window(CropPlace::kTopLeft) == Box{0, 0, 20, 10});
  CHECK(window(CropPlace::kTopRight) == Box{30, 0, 20, 10});
  CHECK(window(CropPlace::kBottomLeft) == Box{0, 30, 20, 10});
  CHECK(window(CropPlace::kBottomRight) == Box{30, 30, 20, 10});
  int leftmost = 0, topmost = 0;
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    const Box box = window(CropPlace::kRandom, {.sample = SampleId{i}});
    REQUIRE((box.left >= 0 && box.left <= 30 && box.top >= 0 && box.top <= 30 && box.width == 20 && box.height == 10));
    leftmost += box.left == 0 ? 1 : 0;
    topmost += box.top == 30 ? 1 : 0;
  }
  CHECK((leftmost > 20 && leftmost < 120));  // of 2,000, each of 31 places alike: 65
  CHECK((topmost > 20 && topmost < 120));
}

TEST_CASE("a sample with a box or size of its own is not made in views", "[plan]") {
  const Recipe recipe = Recipe::of_views({{.resize = ExactSize{{8, 8}}}, {.resize = ExactSize{{4, 4}}}});

  CHECK_THAT(refused(recipe, source_of(99, 98), Box{0, 0, 9, 9}), Catch::Contains("several views"));
  CHECK(drawn(recipe, source_of(99, 98)).views.size() == 2);
}

TEST_CASE("a centre crop is cut from what the bound of the longer side leaves, or refuses it", "[plan]") {
  const Recipe recipe{.resize = ShorterSide{256, 300}, .centre_crop = Size{224, 200}};

  const SampleGeometry long_one = drawn(recipe, source_of(600, 420));
  const Result<SampleGeometry> too_long = draw_geometry(recipe, {}, source_of(640, 320), {}, kMaxSide);

  CHECK(long_one.resized == Size{300, 210});
  CHECK(long_one.window == Box{38, 5, 224, 200});
  REQUIRE_FALSE(too_long);
  CHECK_THAT(too_long.error().message, Catch::Contains("224x200 is larger than the image of 300x150 pixels"));
}

}  // namespace
}  // namespace millrace
