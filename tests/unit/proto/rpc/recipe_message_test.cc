// Recipes and what batches choose beside them, there and back. The tests walk the schema, so that a field, a kind or a
// value which is added to it and not to recipe_message is found.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/recipe_message.h"

using namespace millrace;

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Of every kind, each field another value than its default.
std::vector<Step> every_step() {
  const Surroundings around{.sampling = PixelSampling::kBicubic, .fill = {1, 2, 3}};
  const std::vector<Step> two{{.probability = 0.5F, .kind = steps::Simple::kEqualize}, {.kind = steps::Posterize{3}}};
  return {{.probability = 0.75F, .kind = steps::Simple::kGrayscale},
          {.kind = steps::Posterize{5}},
          {.kind = steps::Solarize{100}},
          {.kind = steps::Sharpness{{0.5F, 2}}},
          {.kind = steps::ColorJitter{Interval{0.1F, 0.2F}, Interval{0.3F, 0.4F}, Interval{0.5F, 0.6F},
                                      Interval{-0.1F, 0.1F}}},
          {.kind = steps::GaussianBlur{5, {0.5F, 0.6F}}},
          {.kind = steps::PillowBlur{{0.7F, 0.8F}}},
          {.kind = steps::Rotation{{-5, 6}, around}},
          {.kind = steps::Affine{{-1, 2}, 0.25F, 0.5F, {0.5F, 3}, {-4, 5}, {-6, 7}, around}},
          {.kind = steps::Shift{4, 5, {6, 7, 8}}},
          {.kind = steps::Perspective{0.25F, around}},
          {.kind = steps::RandAugment{3, 4, 5, around}},
          {.kind = steps::TrivialAugmentWide{7, around}},
          {.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, around}},
          {.kind = steps::TimmRandAugment{3, 4, 0.25F, 0.125F, true, {4, 5, 6}, PixelSampling::kBicubic}},
          {.kind = steps::AugMix{4, 5, 6, 0.5F, false, around}},
          {.kind = steps::TimmAugMix{4, 0.25F, 5, 6, 0.5F, {4, 5, 6}, PixelSampling::kBicubic}},
          {.kind = steps::Sequence{two}},
          {.kind = steps::AnyOrder{two}},
          {.kind = steps::OneOf{two, {1, 3}}}};
}

// Every field another value than its default, the parts of crop and resize aside.
Recipe unusual() {
  return {.ignore_orientation = true,
          .crop = GridCell{.columns = 5, .rows = 4, .column = 3, .row = 2},
          .resize = ShorterSide{.pixels = 31, .longest = 33},
          .filter = Filter::kHamming,
          .centre_crop = Size{224, 192},
          .flip_probability = 0.25F,
          .normalise = Normalise{{0.1F, 0.2F, 0.3F}, {0.4F, 0.5F, 0.6F}},
          .range = ValueRange::kRaw,
          .dtype = DType::kBfloat16,
          .layout = Layout::kNhwc,
          .channels = Channels::kBgr,
          .packing = Packing::kPacked,
          .patches = Patches{{14, 16}, 2, 3},
          .centre_rounding = CentreRounding::kDown,
          .steps = every_step(),
          .erasing = Erasing{.probability = 0.125F,
                             .scale = {0.25F, 0.5F},
                             .ratio = {0.75F, 1.5F},
                             .value = {1, 2, 3},
                             .noise = Erasing::Noise::kPixel,
                             .most = 3},
          .crop_place = CropPlace::kRandom,
          .pad = Pad{1, 2, 3, 4, Size{5, 6}, CropPlace::kTopLeft, Pad::Mode::kReflect, {7, 8, 9}},
          .random_filters = {Filter::kBox, Filter::kLanczos},
          .indices = true,
          .views = {Recipe{}}};
}

const std::vector<Crop>& every_crop() {
  static const std::vector<Crop> kCrops{CentreCrop{{3, 4}}, RandomResizedCrop{0.1F, 0.9F, 0.5F, 2.5F},
                                        BoxCrop{{-1, 2, 3, 4}}, GridCell{5, 6, 7, 8}};
  return kCrops;
}

const std::vector<Resize>& every_resize() {
  static const std::vector<Resize> kResizes{ShorterSide{256},
                                            LongerSide{257},
                                            ExactSize{{31, 32}},
                                            SmartResize{32, 5, (std::uint64_t{1} << 40U) + 1},
                                            TileGrid{{448, 336}, 2, 9},
                                            BoundedSides{3, 4},
                                            ScaleJitter{{5, 6}, {2, 3}},
                                            RandomShorterSide{{7, 8}, 9}};
  return kResizes;
}

// The names of the fields that are not set, at any depth; a oneof counts as set when one of its fields is.
void add_unset(const Message& message, const std::string& at, std::vector<std::string>& unset) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const bool is_set =
        field->is_repeated() ? reflection.FieldSize(message, field) > 0 : reflection.HasField(message, field);
    const auto* oneof = field->real_containing_oneof();
    if (!is_set && (oneof == nullptr || !reflection.HasOneof(message, oneof))) unset.push_back(at + field->name());
    if (is_set && field->message_type() != nullptr && !field->is_repeated())
      add_unset(reflection.GetMessage(message, field), at + field->name() + ".", unset);
  }
}

// Which of its fields the oneof of `message` holds.
std::string kind_of(const Message& message) {
  const auto* oneof = message.GetDescriptor()->oneof_decl(0);
  return message.GetReflection()->GetOneofFieldDescriptor(message, oneof)->name();
}

std::set<std::string> kinds_of(const google::protobuf::Descriptor& type) {
  std::set<std::string> names;
  for (int i = 0; i < type.oneof_decl(0)->field_count(); ++i) names.insert(type.oneof_decl(0)->field(i)->name());
  return names;
}

// `there(value)`, of our value, gives the number back that `back(number)` was given, for every number of the enum; ours
// are in the same order.
template <class Ours, class Wire>
void check_values(const google::protobuf::EnumDescriptor& type, std::function<Result<Ours>(Wire)> back,
                  std::function<Wire(Ours)> there) {
  for (int i = 0; i < type.value_count(); ++i) {
    const int number = type.value(i)->number();
    CAPTURE(type.value(i)->full_name());

    const Result<Ours> ours = back(static_cast<Wire>(number));

    REQUIRE(ours);
    if (number == 0) continue;
    CHECK(static_cast<int>(*ours) == number - 1);
    CHECK(static_cast<int>(there(*ours)) == number);
  }
}

// Of an enum that is a field of a recipe.
template <class Ours>
void check_recipe_field(const char* name, Ours Recipe::*field) {
  const FieldDescriptor* wire = v1::Recipe::descriptor()->FindFieldByName(name);
  check_values<Ours, int>(
      *wire->enum_type(),
      [&](int number) -> Result<Ours> {
        v1::Recipe message;
        message.GetReflection()->SetEnumValue(&message, wire, number);
        MILLRACE_TRY(const Recipe recipe, from_message(message));
        return recipe.*field;
      },
      [&](Ours ours) {
        Recipe recipe;
        recipe.*field = ours;
        const v1::Recipe message = to_message(recipe);
        return message.GetReflection()->GetEnumValue(message, wire);
      });
}

// Of an enum with a pair of functions of its own.
template <class Ours, class Wire>
void check_choice(const google::protobuf::EnumDescriptor& type) {
  check_values<Ours, Wire>(
      type, [](Wire wire) { return from_message("x", wire); }, [](Ours ours) { return to_message(ours); });
}

std::string refusal(const std::function<void(v1::Recipe&)>& spoil) {
  v1::Recipe message;
  spoil(message);
  const Result<Recipe> recipe = from_message(message);
  return recipe ? "none" : recipe.error().message;
}

}  // namespace

TEST_CASE("a recipe comes back from its message in every field", "[rpc]") {
  const Recipe recipe = unusual();

  const v1::Recipe message = to_message(recipe);

  std::vector<std::string> unset;
  add_unset(message, "", unset);
  CHECK(unset == std::vector<std::string>{});
  const Result<Recipe> back = from_message(message);
  REQUIRE(back);
  Recipe expected = recipe;
  expected.views = back->views;  // which share what the recipe says: below
  CHECK(*back == expected);
}

TEST_CASE("every kind of crop comes back from its message", "[rpc]") {
  std::set<std::string> seen;

  for (const Crop& crop : every_crop()) {
    const v1::Recipe message = to_message(Recipe{.crop = crop});
    seen.insert(kind_of(message.crop()));

    CAPTURE(message.ShortDebugString());
    CHECK(from_message(message)->crop == crop);
  }

  CHECK(seen == kinds_of(*v1::Crop::descriptor()));
  CHECK(std::variant_size_v<Crop> == seen.size() + 1);
}

TEST_CASE("every kind of resize comes back from its message", "[rpc]") {
  std::set<std::string> seen;

  for (const Resize& resize : every_resize()) {
    const v1::Recipe message = to_message(Recipe{.resize = resize});
    seen.insert(kind_of(message.resize()));

    CAPTURE(message.ShortDebugString());
    CHECK(from_message(message)->resize == resize);
  }

  CHECK(seen == kinds_of(*v1::Resize::descriptor()));
  CHECK(std::variant_size_v<Resize> == seen.size() + 1);
}

// Of a repeated field the parts as well, which add_unset() does not look into.
TEST_CASE("every kind of step comes back from its message in every field", "[rpc]") {
  std::set<std::string> seen;

  for (const Step& step : every_step()) {
    const v1::Recipe message = to_message(Recipe{.steps = {step}});
    seen.insert(kind_of(message.steps(0)));
    std::vector<std::string> unset;
    add_unset(message.steps(0), "", unset);

    CAPTURE(message.ShortDebugString());
    CHECK(unset == std::vector<std::string>{});
    const Result<Recipe> back = from_message(message);
    REQUIRE(back);
    CHECK(back->steps == std::vector<Step>{step});
  }

  CHECK(seen == kinds_of(*v1::Step::descriptor()));
  CHECK(std::variant_size_v<steps::Kind> == seen.size());
}

TEST_CASE("a step of which only the kind is said has the defaults of the proto", "[rpc]") {
  v1::Recipe message;
  message.add_steps()->mutable_rand_augment();
  message.add_steps()->mutable_trivial_augment_wide();
  message.add_steps()->mutable_auto_augment();
  message.add_steps()->mutable_affine();
  message.add_steps()->mutable_timm_rand_augment()->set_increasing(true);
  message.add_steps()->mutable_aug_mix();
  message.add_steps()->mutable_timm_aug_mix();
  message.mutable_erasing()->set_probability(0.5F);

  const Result<Recipe> recipe = from_message(message);

  REQUIRE(recipe);
  CHECK(recipe->steps == std::vector<Step>{{.kind = steps::RandAugment{}},
                                           {.kind = steps::TrivialAugmentWide{}},
                                           {.kind = steps::AutoAugment{}},
                                           {.kind = steps::Affine{}},
                                           {.kind = steps::TimmRandAugment{.magnitude = 0, .magnitude_std = 0}},
                                           {.kind = steps::AugMix{}},
                                           {.kind = steps::TimmAugMix{}}});
  CHECK(recipe->erasing == Erasing{});
}

TEST_CASE("what is not asked for is not in the message, but for a filter that a sample's own size needs", "[rpc]") {
  CHECK_FALSE(to_message(Recipe{}).has_crop());
  CHECK_FALSE(to_message(Recipe{}).has_resize());
  CHECK_FALSE(to_message(Recipe{}).has_centre_crop());
  CHECK_FALSE(to_message(Recipe{}).has_normalise());
  CHECK_FALSE(to_message(Recipe{}).has_patches());
  CHECK(to_message(Recipe{.filter = Filter::kBicubic}).resize().filter() == v1::FILTER_BICUBIC);
  CHECK(from_message(to_message(Recipe{.filter = Filter::kBicubic}))->resize == Resize{KeepSize{}});
}

TEST_CASE("every value of a recipe's enums comes back from its message", "[rpc]") {
  check_recipe_field("range", &Recipe::range);
  check_recipe_field("dtype", &Recipe::dtype);
  check_recipe_field("layout", &Recipe::layout);
  check_recipe_field("channels", &Recipe::channels);
  check_recipe_field("packing", &Recipe::packing);
  check_recipe_field("centre_rounding", &Recipe::centre_rounding);
  check_values<Filter, int>(
      *v1::Filter_descriptor(),
      [](int number) -> Result<Filter> {
        v1::Recipe message;
        message.mutable_resize()->set_filter(static_cast<v1::Filter>(number));
        MILLRACE_TRY(const Recipe recipe, from_message(message));
        return recipe.filter;
      },
      [](Filter filter) {
        return static_cast<int>(to_message(Recipe{.resize = LongerSide{8}, .filter = filter}).resize().filter());
      });
}

TEST_CASE("every value of what a batch chooses beside its recipe comes back from its message", "[rpc]") {
  check_choice<DType, v1::DType>(*v1::DType_descriptor());
  check_choice<OnError, v1::OnError>(*v1::OnError_descriptor());
  check_choice<Fidelity, v1::Fidelity>(*v1::Fidelity_descriptor());
  check_choice<Priority, v1::Priority>(*v1::Priority_descriptor());
  check_choice<ShardTail, v1::ShardTail>(*v1::ShardTail_descriptor());
}

TEST_CASE("an enum that is not set is what the proto says", "[rpc]") {
  CHECK(*from_message("dtype", v1::DTYPE_UNSPECIFIED) == DType::kUint8);
  CHECK(*from_message("on_error", v1::ON_ERROR_UNSPECIFIED) == OnError::kFail);
  CHECK(*from_message("fidelity", v1::FIDELITY_UNSPECIFIED) == Fidelity::kExact);
  CHECK(*from_message("priority", v1::PRIORITY_UNSPECIFIED) == Priority::kNormal);
  CHECK(*from_message("shard_tail", v1::SHARD_TAIL_UNSPECIFIED) == ShardTail::kPad);
  CHECK_THAT(from_message("priority", static_cast<v1::Priority>(77)).error().message,
             Catch::StartsWith("priority: 77 is not a value that "));
}

TEST_CASE("an empty message is the recipe that the proto's defaults describe", "[rpc]") {
  const Result<Recipe> recipe = from_message(v1::Recipe());

  REQUIRE(recipe);
  CHECK(*recipe == Recipe{});
}

TEST_CASE("numbers of 0 are torchvision's bounds of a random crop, and one patch a group and a frame", "[rpc]") {
  v1::Recipe message;
  message.mutable_crop()->mutable_random_resized()->set_max_ratio(2);
  message.mutable_patches()->set_width(14);
  message.mutable_patches()->set_height(7);

  const Result<Recipe> recipe = from_message(message);

  REQUIRE(recipe);
  CHECK(recipe->crop == Crop{RandomResizedCrop{.max_ratio = 2}});
  CHECK(recipe->patches == Patches{{14, 7}, 1, 1});
}

TEST_CASE("one mean and one deviation count for every channel", "[rpc]") {
  v1::Recipe message;
  message.mutable_normalise()->add_mean(0.5F);
  message.mutable_normalise()->add_std(0.25F);

  const Result<Recipe> recipe = from_message(message);

  REQUIRE(recipe);
  CHECK(recipe->normalise == Normalise{{0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F}});
}

TEST_CASE("what no recipe can hold is refused by its field", "[rpc]") {
  const auto statistics = [](int means, int stds) {
    return [=](v1::Recipe& recipe) {
      recipe.mutable_normalise();
      for (int i = 0; i < means; ++i) recipe.mutable_normalise()->add_mean(1);
      for (int i = 0; i < stds; ++i) recipe.mutable_normalise()->add_std(1);
    };
  };

  CHECK(refusal(statistics(0, 0)) == "normalise.mean: must have 1 or 3 values, has 0");
  CHECK(refusal(statistics(2, 2)) == "normalise.mean: must have 1 or 3 values, has 2");
  CHECK(refusal(statistics(1, 0)) == "normalise.std: must have as many values as mean (1), has 0");
  CHECK(refusal(statistics(3, 1)) == "normalise.std: must have as many values as mean (3), has 1");
  CHECK(refusal(statistics(3, 3)) == "none");
  CHECK(refusal([](v1::Recipe& recipe) { recipe.add_steps(); }) == "steps[0].kind: is not set: say what the step does");
  CHECK(refusal([](v1::Recipe& recipe) { recipe.add_steps()->set_simple(v1::SIMPLE_UNSPECIFIED); }) ==
        "steps[0].simple: says nothing: name a step");
  CHECK(refusal([](v1::Recipe& recipe) {
          recipe.add_steps()->mutable_rotation()->mutable_around()->set_fill("four");
        }) == "steps[0].rotation.around.fill: must be 3 bytes, red, green and blue, or none: has 4");
  CHECK(refusal([](v1::Recipe& recipe) {
          recipe.mutable_erasing()->add_value(1);
          recipe.mutable_erasing()->add_value(2);
        }) == "erasing.value: must have 1 or 3 values, has 2");
  CHECK(refusal([](v1::Recipe& recipe) {
          for (int i = 0; i < 65; ++i) recipe.add_steps()->set_posterize(3);
        }) == "steps: a recipe has at most 64 of them in all");
  CHECK(refusal([](v1::Recipe& recipe) {
          v1::Step* step = recipe.add_steps();
          for (int i = 0; i < 8; ++i) step = step->mutable_sequence()->add_steps();
          step->set_posterize(3);
        }).ends_with("sequence.steps: at most 8 may be in each other"));
  const std::string alone = "resize.longest: is a bound of shorter_side alone: set that, or leave longest out";
  CHECK(refusal([](v1::Recipe& recipe) { recipe.mutable_resize()->set_longest(9); }) == alone);
  CHECK(refusal([](v1::Recipe& recipe) {
          recipe.mutable_resize()->set_longer_side(8);
          recipe.mutable_resize()->set_longest(9);
        }) == alone);
}
