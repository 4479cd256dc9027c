// What a recipe says of views, of padding and of random sizes: whether it makes sense.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "daemon/plan/recipe_check.h"

namespace millrace {
namespace {

constexpr std::uint32_t kMaxSideOfViews = 65'535;

Recipe packed_view(Recipe recipe) {
  recipe.packing = Packing::kPacked;
  return recipe;
}

// The field that the recipe is refused for.
std::string view_field_refused(const Recipe& recipe) {
  const Result<void> checked = check_recipe(recipe, kMaxSideOfViews);
  if (checked) return "none";
  REQUIRE(checked.error().code == Code::kInvalid);
  return checked.error().message.substr(0, checked.error().message.find(": "));
}

TEST_CASE("padding, random sizes and random filters are judged by their names", "[plan]") {
  const auto padding = [](Pad pad) { return view_field_refused({.resize = ExactSize{{8, 8}}, .pad = pad}); };

  CHECK(padding({.left = 65'527}) == "none");
  CHECK(padding({.left = 65'528}) == "recipe.pad");
  CHECK(padding({.left = 65'536}) == "recipe.pad.left");
  CHECK(padding({.to = Size{0, 4}}) == "recipe.pad.to.width");
  CHECK(padding({.left = 1, .place = CropPlace::kTopLeft}) == "recipe.pad.place");
  CHECK(view_field_refused({.resize = LongerSide{64}, .pad = Pad{.to = Size{64, 64}}}) == "none");
  CHECK(view_field_refused({.resize = LongerSide{64}, .pad = Pad{.left = 1, .to = Size{64, 64}}}) == "recipe.packing");
  CHECK(view_field_refused({.resize = RandomShorterSide{{20, 30}, 40}, .pad = Pad{.to = Size{40, 40}}}) == "none");
  CHECK(view_field_refused(
            {.resize = ScaleJitter{{9, 9}, {0.1F, 2}}, .centre_crop = Size{9, 9}, .pad = Pad{.to = Size{9, 9}}}) ==
        "none");
  CHECK(view_field_refused(packed_view({.resize = ScaleJitter{{9, 9}, {0, 2}}})) ==
        "recipe.resize.scale_jitter.scale.low");
  CHECK(view_field_refused(packed_view({.resize = ScaleJitter{{9, 9}, {1, 0.5F}}})) ==
        "recipe.resize.scale_jitter.scale.low");
  CHECK(view_field_refused(packed_view({.resize = ScaleJitter{{9, 0}, {1, 2}}})) ==
        "recipe.resize.scale_jitter.target.height");
  CHECK(view_field_refused(packed_view({.resize = RandomShorterSide{}})) == "recipe.resize.random_shorter_side.sides");
  CHECK(view_field_refused(packed_view({.resize = RandomShorterSide{{20, 30}, 25}})) ==
        "recipe.resize.random_shorter_side.longest");
  const Recipe mask{
      .resize = ExactSize{{8, 8}}, .filter = Filter::kNearest, .channels = Channels::kGrey, .indices = true};
  Recipe blurred = mask, coloured = mask;
  blurred.filter = Filter::kBilinear;
  coloured.channels = Channels::kRgb;
  CHECK(view_field_refused(mask) == "none");
  CHECK(view_field_refused(blurred) == "recipe.indices");
  CHECK(view_field_refused(coloured) == "recipe.indices");
  Erasing erasing{.most = 17};
  CHECK(view_field_refused({.resize = ExactSize{{8, 8}}, .erasing = erasing}) == "recipe.erasing.most");
}

TEST_CASE("views are judged one by one, and what is theirs is not the recipe's", "[plan]") {
  const Recipe sound{.resize = ExactSize{{8, 8}}};
  const auto refused = [&](const std::function<void(Recipe&)>& spoil) {
    Recipe recipe = Recipe::of_views({sound, sound});
    spoil(recipe);
    return view_field_refused(recipe);
  };

  CHECK(refused([](Recipe&) {}) == "none");
  CHECK(refused([](Recipe& recipe) { recipe.crop = CentreCrop{{4, 4}}; }) == "recipe.crop");
  CHECK(refused([](Recipe& recipe) { recipe.resize = ExactSize{{4, 4}}; }) == "recipe.resize");
  CHECK(refused([](Recipe& recipe) { recipe.filter = Filter::kBox; }) == "recipe.resize");
  CHECK(refused([](Recipe& recipe) { recipe.random_filters = {Filter::kBox}; }) == "recipe.resize");
  CHECK(refused([](Recipe& recipe) { recipe.pad = Pad{.left = 1}; }) == "recipe.pad");
  CHECK(refused([](Recipe& recipe) { recipe.centre_crop = Size{4, 4}; }) == "recipe.centre_crop");
  CHECK(refused([](Recipe& recipe) { recipe.crop_place = CropPlace::kRandom; }) == "recipe.crop_place");
  CHECK(refused([](Recipe& recipe) { recipe.flip_probability = 1; }) == "recipe.flip_probability");
  CHECK(refused([](Recipe& recipe) { recipe.steps = {{}}; }) == "recipe.steps");
  CHECK(refused([](Recipe& recipe) { recipe.erasing = Erasing{}; }) == "recipe.erasing");
  CHECK(refused([](Recipe& recipe) { recipe.packing = Packing::kPacked; }) == "recipe.packing");
  CHECK(refused([](Recipe& recipe) { recipe.patches = Patches{{4, 4}}; }) == "recipe.patches");
  CHECK(refused([](Recipe& recipe) { recipe.normalise = Normalise{}; }) == "recipe.normalise");
  CHECK(refused([](Recipe& recipe) { recipe.views[1].resize = KeepSize{}; }) == "recipe.views[1].resize");
  CHECK(refused([](Recipe& recipe) {
          recipe.views[1].resize = ExactSize{{0, 4}};
        }) == "recipe.views[1].resize.exact.width");
  CHECK(refused([](Recipe& recipe) {
          recipe.views[1].steps = {{.kind = steps::Posterize{9}}};
        }).starts_with("recipe.views[1].steps[0]"));
  CHECK(refused([](Recipe& recipe) { recipe.views[1].views = recipe.views; }) == "recipe.views[1].views");
  CHECK(refused([&](Recipe& recipe) { recipe.views.assign(65, sound); }) == "recipe.views");
  CHECK(refused([](Recipe& recipe) {
          recipe.views[0].steps.assign(5, Step{});
          recipe.views.assign(64, Recipe(recipe.views[0]));
        }) == "recipe.views");
  CHECK(view_field_refused({.resize = ExactSize{{8, 8}}, .crop_place = CropPlace::kRandom}) == "recipe.crop_place");
}

}  // namespace
}  // namespace millrace
