// Micro-benchmarks of kernels/augment: each step on a picture of 224 x 224, rows in and rows out, with every
// instruction set that this processor has. rand_augment is the mean of torchvision's RandAugment(2, 9), aug_mix that of
// its AugMix(), and colour_jitter_drawn that of its ColorJitter(0.4, 0.4, 0.4, 0.1). Machine-readable with --benchmark_format=json.
//   millrace_bench_augment --benchmark_filter=hue
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/augment/augment.h"
#include "kernels/augment/named_operation.h"

namespace {

using namespace millrace::kernels;

constexpr Size kSize{224, 224};

using List = std::vector<Operation>;

// Lists of steps that take turns.
struct Case {
  std::string name;
  std::vector<List> lists;
};

Operation named(const char* name, double magnitude, Sampling sampling) {
  return named_operation(name, magnitude, kSize, sampling, {}).value();
}

Operation perspective(Sampling sampling) {
  return {.step = Step::kPerspective, .sampling = sampling, .matrix = {0.9, 0.08, 10, -0.05, 1.1, 4, 0.0003, -0.0002}};
}

// Each pair of torchvision's operations with magnitude 9 of 31, and either sign.
std::vector<List> rand_augment() {
  constexpr std::pair<const char*, double> kOperations[] = {
      {"Identity", 0},  {"ShearX", 0.09},     {"ShearY", 0.09},    {"TranslateX", 30.45}, {"TranslateY", 30.45},
      {"Rotate", 9},    {"Brightness", 0.27}, {"Color", 0.27},     {"Contrast", 0.27},    {"Sharpness", 0.27},
      {"Posterize", 7}, {"Solarize", 178.5},  {"AutoContrast", 0}, {"Equalize", 0}};
  std::vector<List> lists;
  int sign = 1;
  for (const auto& first : kOperations) {
    for (const auto& second : kOperations) {
      List list;
      for (const auto& [name, magnitude] : {first, second}) {
        const bool is_signed = magnitude != 0 && magnitude != 7 && magnitude < 100;
        sign = is_signed ? -sign : sign;
        const auto operation =
            named_operation(name, is_signed ? sign * magnitude : magnitude, kSize, Sampling::kNearest, {});
        if (operation) list.push_back(*operation);
      }
      lists.push_back(list);
    }
  }
  std::shuffle(lists.begin(), lists.end(), std::mt19937(2));
  return lists;
}

// torchvision's ColorJitter(0.4, 0.4, 0.4, 0.1): four factors and their order.
std::vector<List> colour_jitter() {
  std::mt19937 random(3);
  const auto drawn = [&](float low, float high) { return std::uniform_real_distribution(low, high)(random); };
  std::vector<List> lists(64);
  for (List& list : lists) {
    for (const Step step : {Step::kBrightness, Step::kContrast, Step::kSaturation}) {
      list.push_back({.step = step, .factor = drawn(0.6F, 1.4F)});
    }
    list.push_back({.step = Step::kHue, .value = static_cast<int>(drawn(-0.1F, 0.1F) * 255)});
    std::shuffle(list.begin(), list.end(), random);
  }
  return lists;
}

// torchvision's AugMix(): three chains of one to three operations each, of the three weakest of ten magnitudes.
std::vector<List> aug_mix() {
  std::mt19937 random(4);
  const std::pair<const char*, double> most[] = {
      {"ShearX", 0.3},  {"ShearY", 0.3},   {"TranslateX", 224 / 3.0}, {"TranslateY", 224 / 3.0}, {"Rotate", 30},
      {"Posterize", 4}, {"Solarize", 255}, {"AutoContrast", 0},       {"Equalize", 0},           {"Brightness", 0.9},
      {"Color", 0.9},   {"Contrast", 0.9}, {"Sharpness", 0.9}};
  std::vector<List> lists(256);
  for (List& list : lists) {
    list.push_back({.step = Step::kMixStart, .factor = 0.5F});
    for (int chain = 0; chain < 3; ++chain) {
      for (unsigned left = 1 + random() % 3; left > 0; --left) {
        const auto& [name, magnitude] = most[random() % std::size(most)];
        const double share = static_cast<double>(random() % 3) / 9;
        const std::string_view kind = name;
        const double of_bin = kind == "Posterize" ? 4 : kind == "Solarize" ? 255 - share * 255 : share * magnitude;
        list.push_back(named(name, of_bin, Sampling::kBilinear));
      }
      list.push_back({.step = Step::kMixAdd, .factor = 0.5F / 3});
    }
    list.push_back({.step = Step::kMixEnd});
  }
  return lists;
}

std::vector<Case> cases() {
  const Operation brightness{.step = Step::kBrightness, .factor = 1.3F},
      contrast{.step = Step::kContrast, .factor = 0.7F}, saturation{.step = Step::kSaturation, .factor = 1.2F},
      hue{.step = Step::kHue, .value = 20};
  std::vector<std::pair<std::string, List>> single{
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
    single.push_back({std::string("rotate_") + suffix, {named("Rotate", 20, sampling)}});
    single.push_back({std::string("shear_") + suffix, {named("ShearX", 0.2, sampling)}});
    single.push_back({std::string("perspective_") + suffix, {perspective(sampling)}});
    single.push_back({std::string("translate_") + suffix, {named("TranslateX", 30, sampling)}});
  }
  std::vector<Case> all{
      {"rand_augment", rand_augment()}, {"aug_mix", aug_mix()}, {"colour_jitter_drawn", colour_jitter()}};
  for (const auto& [name, list] : single) all.push_back({name, {list}});
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

void augment(benchmark::State& state, const std::vector<List>& lists, Target target) {
  const std::vector<std::uint8_t> pixels = picture();
  std::vector<std::uint8_t> made(pixels.size());
  constexpr std::ptrdiff_t kStride = std::ptrdiff_t{3} * kSize.width;
  const U8View in{pixels.data(), kSize.width, kSize.height, 3, kStride};
  const MutableU8View out{made.data(), kSize.width, kSize.height, 3, kStride};
  Augmenter augmenter(target);
  TimeLimit limit;
  std::size_t turn = 0;
  for (auto _ : state) {
    if (!augmenter.apply(in, lists[turn++ % lists.size()], limit, out)) state.SkipWithError("the time was over");
    benchmark::ClobberMemory();
  }
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  for (const auto& [name, lists] : cases()) {
    for (const Target target : available_targets()) {
      benchmark::RegisterBenchmark((name + "/" + std::string(name_of(target))).c_str(), augment, lists, target)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
