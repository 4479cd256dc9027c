#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "daemon/plan/recipe_check.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

constexpr std::uint32_t kMaxSideChecked = 65'535;
const float kNaN = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

Recipe packed(Recipe recipe) {
  recipe.packing = Packing::kPacked;
  return recipe;
}

// The field that the recipe is refused for.
std::string field_refused(const Recipe& recipe) {
  const Result<void> checked = check_recipe(recipe, kMaxSideChecked);
  if (checked) return "none";
  REQUIRE(checked.error().code == Code::kInvalid);
  return checked.error().message.substr(0, checked.error().message.find(": "));
}

TEST_CASE("recipes that people use are accepted", "[plan]") {
  const Normalise imagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

  REQUIRE(field_refused({.crop = RandomResizedCrop{},
                         .resize = ExactSize{{224, 224}},
                         .flip_probability = 0.5F,
                         .normalise = imagenet,
                         .dtype = DType::kFloat32}) == "none");
  REQUIRE(field_refused({.resize = ShorterSide{256}, .centre_crop = Size{224, 224}}) == "none");
  REQUIRE(field_refused(packed({.resize = ShorterSide{800, 1'333}})) == "none");
  REQUIRE(field_refused({.resize = ShorterSide{256, 300}, .centre_crop = Size{224, 224}}) == "none");
  REQUIRE(field_refused(packed({})) == "none");
  REQUIRE(field_refused(packed({.resize = LongerSide{1024}})) == "none");
  REQUIRE(field_refused({.crop = BoxCrop{{0, 0, 32, 32}}}) == "none");
}

TEST_CASE("a filter beside those that are drawn is refused", "[plan]") {
  const std::vector<Filter> drawn{Filter::kBox, Filter::kLanczos};

  REQUIRE(field_refused({.resize = ExactSize{{9, 9}}, .random_filters = drawn}) == "none");
  for (const Filter filter : {Filter::kNearest, Filter::kBox, Filter::kHamming, Filter::kBicubic, Filter::kLanczos}) {
    CAPTURE(static_cast<int>(filter));
    REQUIRE(field_refused({.resize = ExactSize{{9, 9}}, .filter = filter, .random_filters = drawn}) ==
            "recipe.resize.filter");
  }
}

TEST_CASE("a value out of range is refused by the field's name", "[plan]") {
  REQUIRE(field_refused({.resize = ExactSize{{0, 224}}}) == "recipe.resize.exact.width");
  REQUIRE(field_refused({.resize = ExactSize{{224, 65'536}}}) == "recipe.resize.exact.height");
  REQUIRE(field_refused(packed({.resize = ShorterSide{0}})) == "recipe.resize.shorter_side");
  REQUIRE(field_refused(packed({.resize = LongerSide{70'000}})) == "recipe.resize.longer_side");
  REQUIRE(field_refused({.crop = CentreCrop{{0, 1}}}) == "recipe.crop.centre.width");
  REQUIRE(field_refused({.centre_crop = Size{224, 0}}) == "recipe.centre_crop.height");
  REQUIRE(field_refused(packed({.crop = BoxCrop{{-1, 0, 5, 5}}})) == "recipe.crop.box.left");
  REQUIRE(field_refused(packed({.crop = BoxCrop{{0, -1, 5, 5}}})) == "recipe.crop.box.top");
  REQUIRE(field_refused(packed({.crop = BoxCrop{{0, 0, 0, 5}}})) == "recipe.crop.box.width");
  REQUIRE(field_refused(packed({.crop = BoxCrop{{65'000, 0, 1'000, 5}}})) == "recipe.crop.box");
  REQUIRE(field_refused(packed({.flip_probability = 1.5F})) == "recipe.flip_probability");
  REQUIRE(field_refused(packed({.flip_probability = kNaN})) == "recipe.flip_probability");
}

TEST_CASE("sizes computed from the image are refused by the field's name", "[plan]") {
  constexpr std::uint64_t kMost = std::uint64_t{kMaxSideChecked} * kMaxSideChecked;
  const auto field = [](Resize resize) { return field_refused(packed({.resize = resize})); };

  REQUIRE(field(SmartResize{28, 3136, 1'003'520}) == "none");
  REQUIRE(field(SmartResize{kMaxSideChecked, kMost, kMost}) == "none");
  REQUIRE(field(SmartResize{0, 1, 1}) == "recipe.resize.smart.factor");
  REQUIRE(field(SmartResize{28, 0, 1}) == "recipe.resize.smart.min_pixels");
  REQUIRE(field(SmartResize{28, 2, 1}) == "recipe.resize.smart.max_pixels");
  REQUIRE(field(SmartResize{28, 1, kMost + 1}) == "recipe.resize.smart.max_pixels");
  REQUIRE(field(TileGrid{{448, 448}, 1, 12}) == "none");
  REQUIRE(field(TileGrid{{0, 448}, 1, 12}) == "recipe.resize.tile_grid.tile.width");
  REQUIRE(field(TileGrid{{448, 448}, 0, 12}) == "recipe.resize.tile_grid.min_tiles");
  REQUIRE(field(TileGrid{{448, 448}, 13, 12}) == "recipe.resize.tile_grid.max_tiles");
  REQUIRE(field(TileGrid{{448, 448}, 1, 257}) == "recipe.resize.tile_grid.max_tiles");
  REQUIRE(field(BoundedSides{378, 980}) == "none");
  REQUIRE(field(BoundedSides{0, 980}) == "recipe.resize.bounded.shortest");
  REQUIRE(field(BoundedSides{378, 377}) == "recipe.resize.bounded.longest");
  REQUIRE(field_refused(packed({.crop = GridCell{2, 2, 1, 1}})) == "none");
  REQUIRE(field_refused(packed({.crop = GridCell{0, 2, 0, 1}})) == "recipe.crop.cell.columns");
  REQUIRE(field_refused(packed({.crop = GridCell{2, 2, 2, 1}})) == "recipe.crop.cell.column");
  REQUIRE(field_refused(packed({.crop = GridCell{2, 2, 1, 2}})) == "recipe.crop.cell.row");
}

TEST_CASE("patches that make no sense, or do not divide a size known beforehand, are refused", "[plan]") {
  const auto field = [](Recipe recipe, Patches patches) {
    recipe.patches = patches;
    return field_refused(packed(recipe));
  };
  const Patches qwen{{14, 14}, 2, 2};

  REQUIRE(field({}, qwen) == "none");
  REQUIRE(field({.resize = SmartResize{28, 3136, 1'003'520}}, qwen) == "none");
  REQUIRE(field({.resize = TileGrid{{448, 448}, 1, 12}}, {{448, 448}}) == "none");
  REQUIRE(field({.resize = SmartResize{14, 3136, 1'003'520}, .centre_crop = Size{28, 56}}, qwen) == "none");
  REQUIRE(field({}, {{0, 14}}) == "recipe.patches.width");
  REQUIRE(field({}, {{14, 65'536}}) == "recipe.patches.height");
  REQUIRE(field({}, {{14, 14}, 0}) == "recipe.patches.merge");
  REQUIRE(field({}, {{14, 14}, 65}) == "recipe.patches.merge");
  REQUIRE(field({}, {{14, 14}, 1, 17}) == "recipe.patches.temporal");
  REQUIRE(field({.layout = Layout::kNhwc}, qwen) == "recipe.layout");
  REQUIRE(field({.resize = SmartResize{14, 3136, 1'003'520}}, qwen) == "recipe.patches.width");
  REQUIRE(field({.resize = TileGrid{{448, 440}, 1, 12}}, qwen) == "recipe.patches.height");
  REQUIRE(field({.resize = ExactSize{{56, 57}}}, qwen) == "recipe.patches.height");
  REQUIRE(field({.resize = ShorterSide{256}, .centre_crop = Size{225, 224}}, {{16, 16}}) == "recipe.patches.width");
}

TEST_CASE("scales and ratios that are no range are refused", "[plan]") {
  const auto field = [](RandomResizedCrop crop) { return field_refused(packed({.crop = crop})); };

  REQUIRE(field({.min_scale = 0}) == "recipe.crop.random_resized.min_scale");
  REQUIRE(field({.min_scale = kNaN}) == "recipe.crop.random_resized.min_scale");
  REQUIRE(field({.max_scale = 1.5F}) == "recipe.crop.random_resized.max_scale");
  REQUIRE(field({.min_scale = 0.9F, .max_scale = 0.5F}) == "recipe.crop.random_resized.min_scale");
  REQUIRE(field({.min_ratio = -1}) == "recipe.crop.random_resized.min_ratio");
  REQUIRE(field({.max_ratio = std::numeric_limits<float>::infinity()}) == "recipe.crop.random_resized.max_ratio");
  REQUIRE(field({.min_ratio = 2, .max_ratio = 1}) == "recipe.crop.random_resized.min_ratio");
}

TEST_CASE("normalising is refused for uint8 and for a standard deviation of 0", "[plan]") {
  REQUIRE(field_refused(packed({.normalise = Normalise{}})) == "recipe.normalise");
  REQUIRE(field_refused(packed({.normalise = Normalise{{}, {1, 0, 1}}, .dtype = DType::kFloat16})) ==
          "recipe.normalise.std[1]");
  REQUIRE(field_refused(packed({.normalise = Normalise{{0, 0, kNaN}}, .dtype = DType::kFloat32})) ==
          "recipe.normalise.mean[2]");
}

TEST_CASE("one tensor for all is refused where the recipe leaves sizes open", "[plan]") {
  REQUIRE(field_refused({}) == "recipe.packing");
  REQUIRE(field_refused({.resize = ShorterSide{256}}) == "recipe.packing");
  REQUIRE(field_refused({.resize = ShorterSide{256, 300}}) == "recipe.packing");
  REQUIRE(field_refused({.crop = RandomResizedCrop{}}) == "recipe.packing");
}

TEST_CASE("a centre crop that can never fit is refused", "[plan]") {
  REQUIRE(field_refused({.resize = ExactSize{{256, 200}}, .centre_crop = Size{224, 224}}) == "recipe.centre_crop");
}

TEST_CASE("a resize that is always over the limit is refused", "[plan]") {
  REQUIRE(field_refused({.crop = BoxCrop{{0, 0, 1, 1'000}}, .resize = ShorterSide{100}}) == "recipe.resize");
}

// What a message can say: a field spoilt, and what the refusal begins with.
struct Nonsense {
  std::string text;
  std::function<void(v1::Recipe&)> spoil;
};

const std::vector<Nonsense>& nonsense() {
  static const std::vector<Nonsense> kTable{
      {"recipe.crop.centre.width: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_crop()->mutable_centre()->set_height(1); }},
      {"recipe.crop.centre.height: must be between 1 and 65535 (limits.side), is 4294967295",
       [](auto& r) {
         r.mutable_crop()->mutable_centre()->set_width(1);
         r.mutable_crop()->mutable_centre()->set_height(~0U);
       }},
      {"recipe.crop.random_resized.min_scale: must be more than 0 and at most 1, is nan",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_scale(kNaN); }},
      {"recipe.crop.random_resized.min_scale: must be more than 0",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_scale(-1); }},
      {"recipe.crop.random_resized.min_scale: 0.9 is over max_scale, 0.5",
       [](auto& r) {
         r.mutable_crop()->mutable_random_resized()->set_min_scale(0.9F);
         r.mutable_crop()->mutable_random_resized()->set_max_scale(0.5F);
       }},
      {"recipe.crop.random_resized.max_scale: must be more than 0 and at most 1, is 1.5",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_max_scale(1.5F); }},
      {"recipe.crop.random_resized.min_ratio: 9 is over max_ratio, 1.33333",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_min_ratio(9); }},
      {"recipe.crop.random_resized.max_ratio: must be more than 0 and at most 1e+06, is inf",
       [](auto& r) { r.mutable_crop()->mutable_random_resized()->set_max_ratio(kInfinity); }},
      {"recipe.crop.box.width: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_crop()->mutable_box()->set_height(4); }},
      {"recipe.resize.shorter_side: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_resize()->set_shorter_side(0); }},
      {"recipe.resize.longest: must be more than resize.shorter_side (256), is 256; resize.longer_side alone bounds",
       [](auto& r) {
         r.mutable_resize()->set_shorter_side(256);
         r.mutable_resize()->set_longest(256);
       }},
      {"recipe.resize.longest: must be between 1 and 65535 (limits.side), is 4294967295",
       [](auto& r) {
         r.mutable_resize()->set_shorter_side(256);
         r.mutable_resize()->set_longest(~0U);
       }},
      {"recipe.resize.longest: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) {
         r.mutable_resize()->set_shorter_side(256);
         r.mutable_resize()->set_longest(0);
       }},
      {"recipe.resize.longer_side: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_resize()->set_longer_side(0); }},
      {"recipe.resize.exact.height: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) {
         r.mutable_resize()->mutable_exact()->set_width(1);
         r.mutable_resize()->mutable_exact()->set_height(0);
       }},
      {"recipe.crop.cell.columns: must be between 1 and 65535, is 0",
       [](auto& r) { r.mutable_crop()->mutable_cell(); }},
      {"recipe.crop.cell.row: must be between 0 and 2, is 4294967295",
       [](auto& r) {
         r.mutable_crop()->mutable_cell()->set_columns(1);
         r.mutable_crop()->mutable_cell()->set_rows(3);
         r.mutable_crop()->mutable_cell()->set_row(~0U);
       }},
      {"recipe.resize.smart.factor: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_resize()->mutable_smart(); }},
      {"recipe.resize.smart.factor: must be between 1 and 65535 (limits.side), is 4294967295",
       [](auto& r) { r.mutable_resize()->mutable_smart()->set_factor(~0U); }},
      {"recipe.resize.smart.min_pixels: must be between 1 and 4294836225, is 0",
       [](auto& r) { r.mutable_resize()->mutable_smart()->set_factor(28); }},
      {"recipe.resize.smart.max_pixels: must be between 1 and 4294836225, is 18446744073709551615",
       [](auto& r) {
         r.mutable_resize()->mutable_smart()->set_factor(28);
         r.mutable_resize()->mutable_smart()->set_min_pixels(1);
         r.mutable_resize()->mutable_smart()->set_max_pixels(~0ULL);
       }},
      {"recipe.resize.tile_grid.tile.width: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_resize()->mutable_tile_grid(); }},
      {"recipe.resize.tile_grid.max_tiles: must be between 1 and 256, is 4294967295",
       [](auto& r) {
         auto& grid = *r.mutable_resize()->mutable_tile_grid();
         grid.mutable_tile()->set_width(448);
         grid.mutable_tile()->set_height(448);
         grid.set_min_tiles(1);
         grid.set_max_tiles(~0U);
       }},
      {"recipe.resize.bounded.shortest: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_resize()->mutable_bounded(); }},
      {"recipe.resize.bounded.longest: must be between 378 and 65535, is 0",
       [](auto& r) { r.mutable_resize()->mutable_bounded()->set_shortest(378); }},
      {"recipe.centre_crop.width: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_centre_crop(); }},
      {"recipe.flip_probability: must be between 0 and 1, is nan", [](auto& r) { r.set_flip_probability(kNaN); }},
      {"recipe.flip_probability: must be between 0 and 1, is 1.5", [](auto& r) { r.set_flip_probability(1.5F); }},
      {"recipe.flip_probability: must be between 0 and 1, is -0.5", [](auto& r) { r.set_flip_probability(-0.5F); }},
      {"recipe.normalise.std[0]: must be finite and not 0, is 0",
       [](auto& r) {
         r.mutable_normalise()->add_mean(1);
         r.mutable_normalise()->add_std(0);
       }},
      {"recipe.normalise.mean[0]: must be finite",
       [](auto& r) {
         r.mutable_normalise()->add_mean(kNaN);
         r.mutable_normalise()->add_std(1);
       }},
      {"recipe.patches.width: must be between 1 and 65535 (limits.side), is 0",
       [](auto& r) { r.mutable_patches()->set_height(14); }},
      {"recipe.patches.height: must be between 1 and 65535 (limits.side), is 4294967295",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(~0U);
       }},
      {"recipe.patches.merge: must be between 1 and 64, is 4294967295",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(14);
         r.mutable_patches()->set_merge(~0U);
       }},
      {"recipe.patches.temporal: must be between 1 and 16, is 17",
       [](auto& r) {
         r.mutable_patches()->set_width(14);
         r.mutable_patches()->set_height(14);
         r.mutable_patches()->set_temporal(17);
       }},
  };
  return kTable;
}

TEST_CASE("a message that makes no sense is a recipe that is refused with the name of its field", "[plan]") {
  for (const Nonsense& row : nonsense()) {
    v1::Recipe message;
    message.set_packing(v1::PACKING_PACKED);
    message.set_dtype(v1::DTYPE_FLOAT32);
    row.spoil(message);
    const Result<Recipe> recipe = from_message(message);
    REQUIRE(recipe);

    const Result<void> checked = check_recipe(*recipe, kMaxSideChecked);

    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == Code::kInvalid);
    CHECK_THAT(checked.error().message, Catch::StartsWith(row.text));
  }
}

TEST_CASE("a tensor's bytes count samples, pixels, channels and elements", "[plan]") {
  const Recipe floats{.resize = ExactSize{{224, 224}}, .dtype = DType::kFloat32};
  const Recipe grey{.resize = ExactSize{{10, 20}}, .dtype = DType::kFloat16, .channels = Channels::kGrey};

  REQUIRE(one_size_tensor_bytes(floats, 256) == Bytes{256ULL * 224 * 224 * 3 * 4});
  REQUIRE(one_size_tensor_bytes(grey, 3) == Bytes{3 * 10 * 20 * 2});
  const Recipe patches{.resize = ExactSize{{56, 28}}, .dtype = DType::kFloat32, .patches = Patches{{14, 14}, 2, 2}};
  REQUIRE(one_size_tensor_bytes(patches, 3) == Bytes{3 * 56 * 28 * 3 * 2 * 4});
}

Recipe stepping(std::vector<Step> steps) {
  return {.resize = ExactSize{{32, 32}}, .steps = std::move(steps)};
}

Recipe erasing(const Erasing& erasing, DType dtype = DType::kFloat32) {
  return {.resize = ExactSize{{32, 32}}, .dtype = dtype, .erasing = erasing};
}

std::vector<Step> nested(int depth) {
  std::vector<Step> steps{{.kind = steps::Simple::kInvert}};
  for (int i = 1; i < depth; ++i) steps = {{.kind = steps::Sequence{steps}}};
  return steps;
}

TEST_CASE("steps that people use are accepted", "[plan]") {
  const Step invert{.kind = steps::Simple::kInvert};

  REQUIRE(field_refused(stepping({{.kind = steps::RandAugment{}},
                                  {.kind = steps::TrivialAugmentWide{}},
                                  {.kind = steps::AutoAugment{}},
                                  {.kind = steps::TimmRandAugment{}},
                                  {.kind = steps::AugMix{}},
                                  {.kind = steps::TimmAugMix{}},
                                  {.kind = steps::ColorJitter{.hue = Interval{-0.5F, 0.5F}}},
                                  {.kind = steps::OneOf{{invert, invert}, {0, 1}}}})) == "none");
  REQUIRE(field_refused(stepping(std::vector<Step>(64, invert))) == "none");
  REQUIRE(field_refused(stepping(nested(8))) == "none");
  REQUIRE(field_refused(erasing({.noise = Erasing::Noise::kPixel})) == "none");
  REQUIRE(field_refused(erasing({.value = {-2, 0, 2}})) == "none");
}

TEST_CASE("a step that makes no sense is refused by the way to it", "[plan]") {
  struct Row {
    Step step;
    std::string field;
  };
  const Surroundings unknown{.sampling = static_cast<PixelSampling>(9)};
  const Row rows[] = {
      {{.probability = 1.5F}, "probability"},
      {{.probability = kNaN}, "probability"},
      {{.kind = static_cast<steps::Simple>(99)}, "simple"},
      {{.kind = steps::Posterize{0}}, "posterize"},
      {{.kind = steps::Posterize{9}}, "posterize"},
      {{.kind = steps::Solarize{256.5F}}, "solarize"},
      {{.kind = steps::Solarize{kNaN}}, "solarize"},
      {{.kind = steps::Sharpness{{2, 1}}}, "sharpness"},
      {{.kind = steps::Sharpness{{-1, 1}}}, "sharpness.low"},
      {{.kind = steps::Sharpness{{0, kInfinity}}}, "sharpness.high"},
      {{.kind = steps::ColorJitter{}}, "color_jitter"},
      {{.kind = steps::ColorJitter{.hue = Interval{0, 0.6F}}}, "color_jitter.hue.high"},
      {{.kind = steps::GaussianBlur{.kernel_size = 4}}, "gaussian_blur.kernel_size"},
      {{.kind = steps::GaussianBlur{.kernel_size = 101}}, "gaussian_blur.kernel_size"},
      {{.kind = steps::GaussianBlur{.sigma = {0, 1}}}, "gaussian_blur.sigma.low"},
      {{.kind = steps::PillowBlur{{1, 101}}}, "pillow_blur.high"},
      {{.kind = steps::Rotation{{kNaN, 1}}}, "rotation.degrees.low"},
      {{.kind = steps::Rotation{{0, 1}, unknown}}, "rotation.around.sampling"},
      {{.kind = steps::Affine{.translate_x = 1.5F}}, "affine.translate_x"},
      {{.kind = steps::Affine{.scale = {0, 1}}}, "affine.scale.low"},
      {{.kind = steps::Affine{.shear_y = {0, 90}}}, "affine.shear_y.high"},
      {{.kind = steps::Shift{.x = 4097}}, "shift.x"},
      {{.kind = steps::Perspective{.distortion = 1.01F}}, "perspective.distortion"},
      {{.kind = steps::RandAugment{.operations = 0}}, "rand_augment.operations"},
      {{.kind = steps::RandAugment{.bins = 1}}, "rand_augment.bins"},
      {{.kind = steps::RandAugment{.magnitude = 31}}, "rand_augment.magnitude"},
      {{.kind = steps::TrivialAugmentWide{.bins = 1001}}, "trivial_augment_wide.bins"},
      {{.kind = steps::AutoAugment{static_cast<steps::AugmentPolicy>(9)}}, "auto_augment.policy"},
      {{.kind = steps::TimmRandAugment{.magnitude = 11}}, "timm_rand_augment.magnitude"},
      {{.kind = steps::TimmRandAugment{.probability = -1}}, "timm_rand_augment.probability"},
      {{.kind = steps::AugMix{.severity = 0}}, "aug_mix.severity"},
      {{.kind = steps::AugMix{.severity = 11}}, "aug_mix.severity"},
      {{.kind = steps::AugMix{.width = 0}}, "aug_mix.width"},
      {{.kind = steps::AugMix{.width = 9}}, "aug_mix.width"},
      {{.kind = steps::AugMix{.width = 4'000'000'000}}, "aug_mix.width"},
      {{.kind = steps::AugMix{.depth = 17}}, "aug_mix.depth"},
      {{.kind = steps::AugMix{.alpha = 0.09F}}, "aug_mix.alpha"},
      {{.kind = steps::AugMix{.alpha = kNaN}}, "aug_mix.alpha"},
      {{.kind = steps::AugMix{.around = unknown}}, "aug_mix.around.sampling"},
      {{.kind = steps::TimmAugMix{.magnitude = 10.5F}}, "timm_aug_mix.magnitude"},
      {{.kind = steps::TimmAugMix{.magnitude_std = kInfinity}}, "timm_aug_mix.magnitude_std"},
      {{.kind = steps::TimmAugMix{.alpha = 101}}, "timm_aug_mix.alpha"},
      {{.kind = steps::OneOf{}}, "one_of"},
      {{.kind = steps::Sequence{}}, "sequence"},
      {{.kind = steps::OneOf{{Step{}}, {0}}}, "one_of.weights"},
      {{.kind = steps::OneOf{{Step{}}, {1, 1}}}, "one_of.weights"},
      {{.kind = steps::OneOf{{Step{}}, {-1}}}, "one_of.weights[0]"},
  };

  for (const Row& row : rows) {
    CAPTURE(row.field);
    CHECK(field_refused(stepping({row.step})) == "recipe.steps[0]." + row.field);
    const Step group{.kind = steps::AnyOrder{{Step{}, row.step}}};
    CHECK(field_refused(stepping({group})) == "recipe.steps[0].any_order.steps[1]." + row.field);
  }
}

TEST_CASE("steps are bounded in number, in depth and in what a sample may get", "[plan]") {
  const Step sixteen{.kind = steps::RandAugment{.operations = 16}};

  CHECK(field_refused(stepping(std::vector<Step>(65))) == "recipe.steps");
  CHECK(field_refused(stepping({{.kind = steps::AnyOrder{std::vector<Step>(64)}}})) == "recipe.steps");
  CHECK(field_refused(stepping(nested(9))) == "recipe.steps");
  CHECK(field_refused(stepping(std::vector<Step>(4, sixteen))) == "none");
  CHECK(field_refused(stepping(std::vector<Step>(5, sixteen))) == "recipe.steps");
  CHECK(field_refused(stepping({{.kind = steps::OneOf{std::vector<Step>(5, sixteen)}}})) == "none");
  CHECK(field_refused(stepping({{.kind = steps::AugMix{.width = 8, .depth = 6}}})) == "none");
  CHECK(field_refused(stepping({{.kind = steps::AugMix{.width = 8, .depth = 7}}})) == "recipe.steps");
  CHECK(field_refused(stepping(std::vector<Step>(5, {.kind = steps::TimmAugMix{}}))) == "recipe.steps");
}

TEST_CASE("erasing that makes no sense is refused by its field", "[plan]") {
  CHECK(field_refused(erasing({.probability = 2})) == "recipe.erasing.probability");
  CHECK(field_refused(erasing({.scale = {0, 0.5F}})) == "recipe.erasing.scale.low");
  CHECK(field_refused(erasing({.scale = {0.5F, 0.25F}})) == "recipe.erasing.scale");
  CHECK(field_refused(erasing({.ratio = {0, 1}})) == "recipe.erasing.ratio.low");
  CHECK(field_refused(erasing({.ratio = {1, kNaN}})) == "recipe.erasing.ratio.high");
  CHECK(field_refused(erasing({.value = {0, kInfinity, 0}})) == "recipe.erasing.value[1]");
  CHECK(field_refused(erasing({.value = {0, 0, 256}}, DType::kUint8)) == "recipe.erasing.value[2]");
  CHECK(field_refused(erasing({.noise = Erasing::Noise::kChannel}, DType::kUint8)) == "recipe.erasing.noise");
  Recipe patches = erasing({});
  patches.patches = Patches{{16, 16}};
  CHECK(field_refused(patches) == "recipe.erasing");
}

}  // namespace
}  // namespace millrace
