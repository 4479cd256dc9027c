// The recipes that people train with: steps, erasing, padding, corners, views, drawn filters. Every backend makes the
// tensors of the CPU's slowest form, bit by bit, or says that it makes none.
#include <random>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

struct NamedRecipe {
  const char* name;
  Recipe recipe;
};

Recipe augmented(std::vector<Step> steps, std::uint32_t side = 64) {
  Recipe recipe = Recipe::train(side);
  recipe.steps = std::move(steps);
  return recipe;
}

Recipe erased(Erasing::Noise noise, DType dtype) {
  Recipe recipe = Recipe::train(64).normalised(dtype);
  recipe.erasing = Erasing{.probability = 0.8F, .value = {0.25F, -1, 2}, .noise = noise, .most = 3};
  return recipe;
}

Recipe padded(Pad::Mode mode, Resize resize, const Pad& pad) {
  Recipe recipe{.resize = std::move(resize), .flip_probability = 0.5F, .pad = pad};
  recipe.pad->mode = mode;
  return recipe;
}

Recipe at_corner(CropPlace place) {
  return {.resize = ShorterSide{80}, .centre_crop = Size{64, 64}, .flip_probability = 0.5F, .crop_place = place};
}

const std::vector<Step> kSimClrSteps{
    {.probability = 0.8F,
     .kind =
         steps::ColorJitter{Interval{0.2F, 1.8F}, Interval{0.2F, 1.8F}, Interval{0.2F, 1.8F}, Interval{-0.2F, 0.2F}}},
    {.probability = 0.2F, .kind = steps::Simple::kGrayscale},
    {.probability = 0.5F, .kind = steps::GaussianBlur{.kernel_size = 7, .sigma = {0.1F, 2}}}};

// Two large views and three small ones of other steps and filters.
Recipe of_crops() {
  Recipe large = augmented(kSimClrSteps, 64), small = augmented(kSimClrSteps, 40);
  large.filter = Filter::kBicubic;
  large.steps.push_back({.probability = 0.3F, .kind = steps::Solarize{128}});
  small.crop = RandomResizedCrop{0.05F, 0.3F};
  small.erasing = Erasing{.probability = 0.5F, .value = {1, 0, 1}};
  return Recipe::of_views({large, large, small, small, small});
}

std::vector<NamedRecipe> recipes_of_training() {
  const Surroundings bilinear{.sampling = PixelSampling::kBilinear, .fill = {124, 116, 104}};
  const Surroundings bicubic{.sampling = PixelSampling::kBicubic, .fill = {9, 8, 7}};
  Recipe imagenet_v2 = augmented({{.kind = steps::TrivialAugmentWide{.around = bilinear}}}).normalised(DType::kFloat32);
  imagenet_v2.erasing = Erasing{.probability = 0.5F};
  Recipe a1 = augmented({{.kind = steps::TimmRandAugment{.magnitude = 7, .sampling = PixelSampling::kBicubic}}})
                  .normalised(DType::kFloat16);
  a1.filter = Filter::kBicubic;
  Recipe drawn = Recipe::train(64);
  drawn.random_filters = {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos};
  Recipe patches = padded(Pad::Mode::kConstant, LongerSide{56}, {.to = Size{56, 56}, .fill = {1, 2, 3}});
  patches.patches = Patches{.size = {14, 14}, .merge = 2, .temporal = 2};
  patches.steps = {{.kind = steps::Simple::kAutoContrast}};
  Recipe grey = augmented({{.kind = steps::RandAugment{}}, {.kind = steps::Sharpness{{0, 3}}}});
  grey.channels = Channels::kGrey;
  Recipe shifted = augmented({{.kind = steps::Shift{.x = 8, .y = 8, .fill = {3, 4, 5}}},
                              {.kind = steps::Perspective{.around = bicubic}},
                              {.kind = steps::Rotation{{-30, 30}, bicubic}},
                              {.kind = steps::PillowBlur{}}});
  shifted.layout = Layout::kNhwc;
  shifted.channels = Channels::kBgr;
  Recipe letterbox = padded(Pad::Mode::kConstant, LongerSide{72}, {.to = Size{72, 72}, .fill = {114, 114, 114}});
  letterbox.dtype = DType::kFloat32;
  Recipe of_views = Recipe::of_views({augmented(kSimClrSteps), augmented(kSimClrSteps)});
  return {{"imagenet_v2", imagenet_v2},
          {"a1", a1},
          {"randaugment", augmented({{.kind = steps::RandAugment{.operations = 4, .magnitude = 15}}})},
          {"autoaugment", augmented({{.kind = steps::AutoAugment{.around = bilinear}}})},
          {"augmix", augmented({{.kind = steps::AugMix{}}})},
          {"simclr", of_views.normalised(DType::kBfloat16)},
          {"multi-crop", of_crops()},
          {"letterbox", letterbox},
          {"reflected", padded(Pad::Mode::kReflect, ShorterSide{60}, {.left = 9, .top = 70, .right = 5, .bottom = 3})},
          {"edges", padded(Pad::Mode::kEdge, ExactSize{{50, 40}}, {.left = 60, .bottom = 30})},
          {"symmetric", padded(Pad::Mode::kSymmetric, ExactSize{{30, 20}}, {.left = 80, .top = 3, .right = 70})},
          {"patches", patches},
          {"grey", grey},
          {"shifted", shifted},
          {"drawn filters", drawn},
          {"corner", at_corner(CropPlace::kBottomRight)},
          {"random place", at_corner(CropPlace::kRandom)},
          {"erased", erased(Erasing::Noise::kNone, DType::kFloat16)},
          {"noise of a channel", erased(Erasing::Noise::kChannel, DType::kFloat32)}};
}

EncodedImage random_jpeg(std::mt19937& random) {
  const std::uint32_t width = 90 + random() % 120, height = 90 + random() % 120;
  return encoded(make_jpeg({.pixels = make_pixels(width, height, random() % 5 == 0 ? 1 : 3, random()),
                            .h_samp = 1 + static_cast<int>(random() % 2),
                            .v_samp = 1 + static_cast<int>(random() % 2)}),
                 ImageFormat::kJpeg, {width, height}, 1 + static_cast<int>(random() % 8));
}

JobOnTheBench job_of(const Recipe& recipe, std::uint32_t seed, std::size_t images) {
  std::mt19937 random(seed);
  JobOnTheBench bench(recipe);
  for (std::size_t i = 0; i < images; ++i) {
    EncodedImage image = random_jpeg(random);
    const Result<SampleGeometry> geometry =
        draw_geometry(recipe, {}, image.info, {.seed = seed, .epoch = 1, .sample = SampleId{i}}, 65'535);
    REQUIRE(geometry);
    bench.add(std::move(image), *geometry);
  }
  return bench;
}

// By the CPU's own maker, without vectors.
std::vector<std::vector<std::byte>> on_the_cpu(const Recipe& recipe, std::uint32_t seed, std::size_t images) {
  JobOnTheBench bench = job_of(recipe, seed, images);
  ImageWorkspace workspace;
  std::vector<std::vector<std::byte>> made;
  for (const SampleTask& task : bench.tasks) {
    const SampleOutcome outcome = make_image(task, recipe, SampleLimits{}, workspace, Fidelity::kExact);
    INFO((outcome.error ? outcome.error->message : ""));
    REQUIRE_FALSE(outcome.error);
  }
  for (const auto& tensor : bench.tensors) made.push_back(tensor->copy());
  return made;
}

}  // namespace

TEST_CASE("recipes that people train with are made as the CPU makes them, by GPUs as well", "[conformance]") {
  constexpr std::size_t kImages = 8;
  const std::vector<NamedRecipe> recipes = recipes_of_training();
  for (const BackendUnderTest& row : testable_backends()) {
    const std::unique_ptr<Backend> backend = start(row);
    std::uint32_t seed = 40;
    for (const auto& [name, recipe] : recipes) {
      JobOnTheBench bench = job_of(recipe, ++seed, kImages);
      Collector collector;
      REQUIRE(backend->try_submit(bench.job(collector)));

      const Finished finished = collector.wait_for_one();

      const auto expected = on_the_cpu(recipe, seed, kImages);
      std::size_t tensor = 0;
      for (std::size_t i = 0; i < kImages; ++i) {
        const std::size_t views = views_of(recipe).size();
        INFO(row.name << ", " << name << ", sample " << i);
        if (is_refused(*backend, finished.tasks[i], recipe, finished.outcomes[i])) {
          REQUIRE(row.name != "cuda");
          tensor += views;
          continue;
        }
        INFO((finished.outcomes[i].error ? finished.outcomes[i].error->message : ""));
        REQUIRE_FALSE(finished.outcomes[i].error);
        for (std::size_t view = 0; view < views; ++view, ++tensor) {
          INFO("view " << view);
          REQUIRE(bench.tensors[tensor]->intact());
          REQUIRE(bench.tensors[tensor]->copy() == expected[tensor]);
        }
      }
    }
  }
}

}  // namespace millrace
