#include <catch2/catch.hpp>

#include "client/src/wire/messages.h"
#include "millrace/recipe.h"
#include "proto/rpc/recipe_message.h"

using namespace millrace;

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
  REQUIRE(slot_bytes_for({.crop = CentreCrop{{100, 50}}, .resize = ShorterSide{20}}, 1)->count >= 3 * 40 * 20);
  REQUIRE_FALSE(slot_bytes_for(Recipe::thumbnail(320), 64));
  REQUIRE_FALSE(slot_bytes_for(Recipe{.resize = ShorterSide{256}}, 64));
}
