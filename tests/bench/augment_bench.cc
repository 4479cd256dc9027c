// Micro-benchmarks of kernels/augment: each step on a picture of 224 x 224, rows in and rows out, with every instruction
// set that this processor has.
//   millrace_bench_augment --benchmark_filter=hue
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/augment/augment.h"
#include "kernels/augment/named_operation.h"

namespace {

using namespace millrace::kernels;

constexpr Size kSize{224, 224};

using Case = std::pair<std::string, std::vector<Operation>>;

Operation named(const char* name, double magnitude, Sampling sampling) {
  return named_operation(name, magnitude, kSize, sampling, {}).value();
}

Operation perspective(Sampling sampling) {
  return {.step = Step::kPerspective, .sampling = sampling, .matrix = {0.9, 0.08, 10, -0.05, 1.1, 4, 0.0003, -0.0002}};
}

std::vector<Case> cases() {
  const Operation brightness{.step = Step::kBrightness, .factor = 1.3F},
      contrast{.step = Step::kContrast, .factor = 0.7F}, saturation{.step = Step::kSaturation, .factor = 1.2F},
      hue{.step = Step::kHue, .value = 20};
  std::vector<Case> all{
      {"invert", {{.step = Step::kInvert}}},
      {"posterize", {{.step = Step::kPosterize, .value = 4}}},
      {"solarize", {{.step = Step::kSolarize, .factor = 128}}},
      {"brightness", {brightness}},
      {"contrast", {contrast}},
      {"saturation", {saturation}},
      {"hue", {hue}},
      {"colour_jitter", {brightness, contrast, saturation, hue}},
      {"sharpness", {{.step = Step::kSharpness, .factor = 1.7F}}},
      {"grey", {{.step = Step::kGrey}}},
      {"autocontrast", {{.step = Step::kAutocontrast}}},
      {"equalize", {{.step = Step::kEqualize}}},
      {"flip_horizontal", {{.step = Step::kFlipHorizontal}}},
      {"flip_vertical", {{.step = Step::kFlipVertical}}},
      {"quarter_turn", {{.step = Step::kQuarterTurns, .value = 1}}},
      {"solarize_add", {{.step = Step::kSolarizeAdd, .value = 60, .factor = 128}}},
      {"gaussian_blur_23", {{.step = Step::kGaussianBlur, .value = 23, .factor = 1}}},
      {"gaussian_blur_9", {{.step = Step::kGaussianBlur, .value = 9, .factor = 1}}},
      {"pillow_blur", {{.step = Step::kPillowBlur, .factor = 1}}},
  };
  for (const auto& [sampling, suffix] :
       {std::pair{Sampling::kNearest, "nearest"}, {Sampling::kBilinear, "bilinear"}, {Sampling::kBicubic, "bicubic"}}) {
    all.push_back({std::string("rotate_") + suffix, {named("Rotate", 20, sampling)}});
    all.push_back({std::string("shear_") + suffix, {named("ShearX", 0.2, sampling)}});
    all.push_back({std::string("perspective_") + suffix, {perspective(sampling)}});
    all.push_back({std::string("translate_") + suffix, {named("TranslateX", 30, sampling)}});
  }
  return all;
}

// Neighbours alike, as in pictures: what depends on the values depends on that.
std::vector<std::uint8_t> picture() {
  std::mt19937 random(1);
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < kSize.height; ++y) {
    for (int x = 0; x < kSize.width; ++x) {
      for (const int base : {x, y, (x + y) / 2}) pixels.push_back(static_cast<std::uint8_t>(base + random() % 24));
    }
  }
  return pixels;
}

void augment(benchmark::State& state, const std::vector<Operation>& operations, Target target) {
  const std::vector<std::uint8_t> pixels = picture();
  std::vector<std::uint8_t> made(pixels.size());
  constexpr std::ptrdiff_t kStride = std::ptrdiff_t{3} * kSize.width;
  const U8View in{pixels.data(), kSize.width, kSize.height, 3, kStride};
  const MutableU8View out{made.data(), kSize.width, kSize.height, 3, kStride};
  Augmenter augmenter(target);
  TimeLimit limit;
  for (auto _ : state) {
    if (!augmenter.apply(in, operations, limit, out)) state.SkipWithError("the time was over");
    benchmark::ClobberMemory();
  }
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  for (const auto& [name, operations] : cases()) {
    for (const Target target : available_targets()) {
      benchmark::RegisterBenchmark((name + "/" + std::string(name_of(target))).c_str(), augment, operations, target)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
