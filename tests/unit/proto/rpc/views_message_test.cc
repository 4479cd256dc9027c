// A recipe's views and its padding as messages, there and back, and what no message may say of them.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "proto/rpc/recipe_message.h"

using namespace millrace;

namespace {

// Views of which each says all that is its own, and the recipe what they share.
Recipe with_views() {
  Recipe first{.ignore_orientation = true,
               .crop = GridCell{.columns = 5, .rows = 4, .column = 3, .row = 2},
               .resize = ShorterSide{.pixels = 31, .longest = 33},
               .filter = Filter::kHamming,
               .centre_crop = Size{24, 22},
               .flip_probability = 0.25F,
               .normalise = Normalise{{0.1F, 0.2F, 0.3F}, {0.4F, 0.5F, 0.6F}},
               .range = ValueRange::kRaw,
               .dtype = DType::kBfloat16,
               .layout = Layout::kNhwc,
               .channels = Channels::kGrey,
               .centre_rounding = CentreRounding::kDown,
               .steps = {{.kind = steps::Posterize{5}}, {.kind = steps::Solarize{100}}},
               .erasing = Erasing{.probability = 0.125F},
               .crop_place = CropPlace::kTopLeft,
               .pad = Pad{.left = 4},
               .indices = true};
  Recipe second = first;
  second.crop = RandomResizedCrop{0.25F, 0.5F};
  second.crop_place = CropPlace::kCentre;
  second.pad.reset();
  second.steps.clear();
  return Recipe::of_views({first, first, second, first});
}

std::string views_refusal(const std::function<void(v1::Recipe&)>& spoil) {
  v1::Recipe message;
  spoil(message);
  const Result<Recipe> recipe = from_message(message);
  return recipe ? "none" : recipe.error().message;
}

}  // namespace

TEST_CASE("views come back from their message, those alike as one with a count", "[rpc]") {
  const Recipe recipe = with_views();

  const v1::Recipe message = to_message(recipe);
  const Result<Recipe> back = from_message(message);

  REQUIRE(message.views_size() == 3);
  CHECK(message.views(0).count() == 2);
  CHECK_FALSE(message.has_crop());
  CHECK_FALSE(message.has_centre_crop());
  REQUIRE(back);
  CHECK(*back == recipe);
}

TEST_CASE("what a text says of views is what a message says", "[rpc]") {
  const auto two = views_from_text("count: 2 resize { exact { width: 8 height: 9 } }");
  const auto none = views_from_text("count: 2 resise {}");

  REQUIRE(two);
  REQUIRE(two->size() == 2);
  CHECK(two->front() == Recipe{.resize = ExactSize{{8, 9}}});
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().message, Catch::Contains("resise"));
}

TEST_CASE("a message is not taken for more views, nor for more steps, than a recipe may have", "[rpc]") {
  const auto views = [](std::uint32_t count, int steps) {
    return [=](v1::Recipe& recipe) {
      v1::View& view = *recipe.add_views();
      view.set_count(count);
      for (int i = 0; i < steps; ++i) view.add_steps()->set_posterize(3);
    };
  };

  CHECK(views_refusal(views(64, 4)) == "none");
  CHECK(views_refusal(views(0, 4)) == "none");
  CHECK(views_refusal(views(65, 0)) == "views: must be at most 64 in all");
  CHECK(views_refusal(views(std::numeric_limits<std::uint32_t>::max(), 1)) == "views: must be at most 64 in all");
  CHECK(views_refusal(views(64, 5)) == "views: must have at most 256 steps in all views");
  CHECK(views_refusal([](v1::Recipe& recipe) {
          recipe.add_views();
          recipe.add_views()->mutable_resize()->set_longest(9);
        }) == "views[1].resize.longest: is a bound of shorter_side alone: set that, or leave longest out");
}

TEST_CASE("what a message says of padding and random sizes is bounded", "[rpc]") {
  CHECK(views_refusal([](v1::Recipe& recipe) { recipe.mutable_pad()->set_fill("four"); }) ==
        "pad.fill: must be 3 bytes, red, green and blue, or none: has 4");
  CHECK(views_refusal([](v1::Recipe& recipe) {
          recipe.mutable_pad()->set_mode(static_cast<v1::Pad::Mode>(77));
        }).starts_with("pad.mode: 77 is not a value"));
  CHECK(views_refusal([](v1::Recipe& recipe) {
          for (int i = 0; i < 65; ++i) recipe.mutable_resize()->mutable_random_shorter_side()->add_sides(9);
        }) == "resize.random_shorter_side.sides: must be at most 64, are 65");
  CHECK(views_refusal([](v1::Recipe& recipe) {
          for (int i = 0; i < 9; ++i) recipe.mutable_resize()->add_random_filters(v1::FILTER_BOX);
        }) == "resize.random_filters: must be at most 8, are 9");
}
