#include <catch2/catch.hpp>

#include "client/src/messages.h"
#include "millrace/recipe.h"

using namespace millrace::client;
using millrace::Bytes;
namespace v1 = millrace::v1;

TEST_CASE("the training recipe is a random resized crop, flipped every other time", "[client]") {
  const v1::Recipe message = to_message(Recipe::train(224));

  REQUIRE(message.crop().random_resized().min_scale() == 0.08F);
  REQUIRE(message.resize().exact().width() == 224);
  REQUIRE(message.resize().filter() == v1::FILTER_BILINEAR);
  REQUIRE(message.flip_probability() == 0.5F);
  REQUIRE_FALSE(message.has_normalise());
  REQUIRE(message.dtype() == v1::DTYPE_UINT8);
}

TEST_CASE("the evaluation recipe is shorter side, then centre crop, and does not flip", "[client]") {
  const v1::Recipe message = to_message(Recipe::evaluate(256, 224).normalised(DType::kFloat16));

  REQUIRE(message.resize().shorter_side() == 256);
  REQUIRE(message.centre_crop().height() == 224);
  REQUIRE(message.flip_probability() == 0);
  REQUIRE(message.normalise().mean_size() == 3);
  REQUIRE(message.normalise().std(2) == 0.225F);
  REQUIRE(message.dtype() == v1::DTYPE_FLOAT16);
}

TEST_CASE("every way to crop and to resize has its message", "[client]") {
  REQUIRE(to_message(Recipe{.crop = CentreCrop{{3, 4}}}).crop().centre().height() == 4);
  REQUIRE(to_message(Recipe{.crop = BoxCrop{{1, 2, 3, 4}}}).crop().box().top() == 2);
  REQUIRE(to_message(Recipe{.resize = LongerSide{77}, .filter = Filter::kLanczos}).resize().longer_side() == 77);
  REQUIRE(to_message(Recipe{.resize = LongerSide{77}, .filter = Filter::kLanczos}).resize().filter() ==
          v1::FILTER_LANCZOS);
  REQUIRE(to_message(Recipe{.crop = GridCell{2, 3, 1, 2}}).crop().cell().row() == 2);
  REQUIRE(to_message(Recipe{.resize = SmartResize{32, 5, 6}}).resize().smart().max_pixels() == 6);
  REQUIRE(to_message(Recipe{.resize = TileGrid{{448, 336}, 2, 9}}).resize().tile_grid().tile().height() == 336);
  REQUIRE(to_message(Recipe{.resize = TileGrid{{448, 336}, 2, 9}}).resize().tile_grid().max_tiles() == 9);
  REQUIRE(to_message(Recipe{.resize = BoundedSides{3, 4}}).resize().bounded().longest() == 4);
  REQUIRE(to_message(Recipe{.filter = Filter::kBicubic}).resize().filter() == v1::FILTER_BICUBIC);
  REQUIRE_FALSE(to_message(Recipe{}).has_crop());
  REQUIRE_FALSE(to_message(Recipe{}).has_resize());
}

TEST_CASE("patches and the rounding of the centre have their messages", "[client]") {
  const v1::Recipe message =
      to_message(Recipe{.patches = Patches{{14, 7}, 2, 3}, .centre_rounding = CentreRounding::kDown});

  REQUIRE(message.patches().width() == 14);
  REQUIRE(message.patches().height() == 7);
  REQUIRE(message.patches().merge() == 2);
  REQUIRE(message.patches().temporal() == 3);
  REQUIRE(message.centre_rounding() == v1::CENTRE_ROUNDING_DOWN);
  REQUIRE_FALSE(to_message(Recipe{}).has_patches());
}

TEST_CASE("a submitted sample keeps its source, id, label and box", "[client]") {
  const std::byte bytes[] = {std::byte{1}, std::byte{2}};
  const BatchRequest request{
      .samples = {{.source = Path{"/a"}, .label = 5},
                  {.source = Encoded{bytes}, .id = 9, .box = Box{1, 2, 3, 4}, .size = Size{5, 6}},
                  {.source = DatasetSample{3, 12}}},
      .seed = 11,
      .on_error = OnError::kSkip,
      .deadline = std::chrono::milliseconds(1500),
      .backend = "cpu"};

  const v1::Submit message = to_message(7, request, Recipe::train(64));

  REQUIRE(message.batch_id() == 7);
  REQUIRE(message.samples(0).path() == "/a");
  REQUIRE(message.samples(0).label() == 5);
  REQUIRE_FALSE(message.samples(1).has_label());
  REQUIRE_FALSE(message.samples(2).has_label());
  REQUIRE_FALSE(message.samples(0).has_id());
  REQUIRE(message.samples(1).encoded() == std::string("\1\2"));
  REQUIRE(message.samples(1).id() == 9);
  REQUIRE(message.samples(1).box().height() == 4);
  REQUIRE(message.samples(1).size().height() == 6);
  REQUIRE_FALSE(message.samples(0).has_size());
  REQUIRE(message.samples(2).dataset().sample_id() == 12);
  REQUIRE(message.recipe().resize().exact().width() == 64);
  REQUIRE(message.on_error() == v1::ON_ERROR_SKIP);
  REQUIRE(message.deadline_ms() == 1500);
  REQUIRE(message.backend() == "cpu");
}

TEST_CASE("a label of 0 is a label", "[client]") {
  const BatchRequest request{.samples = {{.source = DatasetSample{3, 12}, .label = 0}}};

  const v1::Submit message = to_message(7, request, Recipe::train(64));

  REQUIRE(message.samples(0).has_label());
  REQUIRE(message.samples(0).label() == 0);
}

TEST_CASE("a slot has room for the batch's pixels and records", "[client]") {
  const auto room = slot_bytes_for(Recipe::train(224).normalised(DType::kFloat32), 64);

  REQUIRE(room);
  REQUIRE(room->count >= 64ULL * 3 * 224 * 224 * 4 + 64 * 128);
  REQUIRE(room->count <= 64ULL * 3 * 224 * 224 * 4 + 64 * 192 + 64);
  REQUIRE(slot_bytes_for({.resize = ExactSize{{28, 28}}, .patches = Patches{{14, 14}, 2, 4}}, 1)->count >=
          3 * 28 * 28 * 4);
  REQUIRE_FALSE(slot_bytes_for(Recipe::thumbnail(320), 64));
  REQUIRE_FALSE(slot_bytes_for(Recipe{.resize = ShorterSide{256}}, 64));
}

TEST_CASE("the size of the output is known where the recipe fixes it", "[client]") {
  REQUIRE(fixed_size(Recipe::evaluate(256, 224)) == Size{224, 224});
  REQUIRE(fixed_size(Recipe{.crop = CentreCrop{{5, 6}}}) == Size{5, 6});
  REQUIRE(fixed_size(Recipe{.crop = BoxCrop{{0, 0, 7, 8}}}) == Size{7, 8});
  REQUIRE(fixed_size(Recipe{}) == std::nullopt);
}
