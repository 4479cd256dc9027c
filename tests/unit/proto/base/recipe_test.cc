// The sizes that a recipe alone decides.
#include <catch2/catch.hpp>
#include <limits>

#include "proto/base/recipe.h"

namespace millrace {
namespace {

TEST_CASE("the output size is known where the recipe alone decides it", "[base]") {
  REQUIRE(fixed_size({.resize = ExactSize{{32, 48}}}) == Size{32, 48});
  REQUIRE(fixed_size({.resize = ShorterSide{256}, .centre_crop = Size{224, 200}}) == Size{224, 200});
  REQUIRE(fixed_size({.crop = CentreCrop{{100, 50}}}) == Size{100, 50});
  REQUIRE(fixed_size({.crop = BoxCrop{{5, 5, 100, 50}}}) == Size{100, 50});
  REQUIRE(fixed_size(Recipe::evaluate(256, 224)) == Size{224, 224});
}

TEST_CASE("a crop of fixed size has a fixed size after every resize", "[base]") {
  const auto after = [](Resize resize) { return fixed_size({.crop = CentreCrop{{100, 50}}, .resize = resize}); };

  REQUIRE(after(ShorterSide{20}) == Size{40, 20});
  REQUIRE(after(ShorterSide{20, 30}) == Size{30, 15});
  REQUIRE(after(LongerSide{20}) == Size{20, 10});
  REQUIRE(after(SmartResize{28, 1, 28 * 28}) == Size{28, 28});
  REQUIRE(after(TileGrid{{8, 8}, 2, 2}) == Size{16, 8});
  REQUIRE(after(BoundedSides{40, 80}) == Size{80, 40});
  REQUIRE(fixed_size({.crop = BoxCrop{{5, 5, 100, 50}}, .resize = ShorterSide{20}}) == Size{40, 20});
}

TEST_CASE("the output size is open where it depends on the image", "[base]") {
  REQUIRE_FALSE(fixed_size({}));
  REQUIRE_FALSE(fixed_size({.resize = ShorterSide{20}}));
  REQUIRE_FALSE(fixed_size({.resize = ShorterSide{20, 30}}));
  REQUIRE_FALSE(fixed_size({.resize = LongerSide{20}}));
  REQUIRE_FALSE(fixed_size({.crop = RandomResizedCrop{}}));
  REQUIRE_FALSE(fixed_size({.crop = GridCell{2, 2, 0, 0}, .resize = ShorterSide{20}}));
  REQUIRE_FALSE(fixed_size({.crop = CentreCrop{{1, 201}}, .resize = SmartResize{}}));
}

TEST_CASE("the size of a recipe that makes no sense can be asked for", "[base]") {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const Resize nonsense[] = {KeepSize{},
                             ShorterSide{0},
                             ShorterSide{kMost},
                             ShorterSide{kMost, 1},
                             ShorterSide{0, 0},
                             LongerSide{0},
                             ExactSize{{0, kMost}},
                             SmartResize{0, 0, 0},
                             SmartResize{kMost, ~0ULL, ~0ULL},
                             TileGrid{{0, 0}, 0, 0},
                             TileGrid{{kMost, kMost}, kMost, kMost},
                             TileGrid{{1, 1}, 9, 3},
                             BoundedSides{0, 0},
                             BoundedSides{kMost, kMost}};

  for (const Resize& resize : nonsense) {
    CHECK_FALSE(fixed_size({.crop = CentreCrop{{0, 5}}, .resize = resize}) == Size{0, 5});
    CHECK_FALSE(fixed_size({.crop = BoxCrop{{0, 0, -7, 5}}, .resize = resize}) == Size{kMost - 6, 5});
    static_cast<void>(fixed_size({.crop = CentreCrop{{kMost, 1}}, .resize = resize}));
    static_cast<void>(fixed_size({.crop = BoxCrop{{0, 0, 1, std::numeric_limits<int>::max()}}, .resize = resize}));
  }
  CHECK(fixed_size({.crop = CentreCrop{{4, 4}}, .resize = TileGrid{{7, 8}, 9, 3}}) == Size{7, 8});
  CHECK(fixed_size({.crop = CentreCrop{{4, 4}}, .resize = SmartResize{0, 0, 0}}) == Size{1, 1});
}

TEST_CASE("an image's bytes count pixels, channels, frames and elements", "[base]") {
  REQUIRE(image_bytes({.dtype = DType::kFloat32}, {224, 225}) == Bytes{224ULL * 225 * 3 * 4});
  REQUIRE(image_bytes({.dtype = DType::kFloat16, .channels = Channels::kGrey}, {10, 20}) == Bytes{10 * 20 * 2});
  REQUIRE(image_bytes({.patches = Patches{{14, 14}, 2, 2}}, {56, 28}) == Bytes{56 * 28 * 3 * 2});
}

}  // namespace
}  // namespace millrace
