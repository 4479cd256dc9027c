// Micro-benchmarks of kernels/cpu: every instruction set that this processor has, beside the slow reference.
//   millrace_bench_kernels --benchmark_filter=resample
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "kernels/tensor/reference.h"

namespace {

using namespace millrace::kernels;

std::vector<std::uint8_t> noise(std::size_t bytes) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> result(bytes);
  for (std::uint8_t& byte : result) byte = static_cast<std::uint8_t>(random());
  return result;
}

struct ResampleCase {
  const char* name;
  ResampleSpec spec;
};

const std::vector<ResampleCase>& resample_cases() {
  static const std::vector<ResampleCase> cases = {
      {"bilinear_rgb_520x520_to_224", {3, {520, 520}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_rgb_300x400_to_224_rows_first", {3, {300, 400}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_rgb_160x160_to_224", {3, {160, 160}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_grey_520x520_to_224", {1, {520, 520}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bicubic_rgb_520x520_to_224", {3, {520, 520}, {224, 224}, whole({224, 224}), Filter::kBicubic}},
      {"lanczos_rgb_520x520_to_224", {3, {520, 520}, {224, 224}, whole({224, 224}), Filter::kLanczos}},
      {"bilinear_rgb_4000x3000_to_224", {3, {4000, 3000}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_grey_4000x3000_to_224", {1, {4000, 3000}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_rgb_1200x900_to_224", {3, {1200, 900}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"bilinear_rgb_2000x1500_to_224", {3, {2000, 1500}, {224, 224}, whole({224, 224}), Filter::kBilinear}},
      {"nearest_rgb_520x520_to_224", {3, {520, 520}, {224, 224}, whole({224, 224}), Filter::kNearest}},
  };
  return cases;
}

U8View view_of(const std::vector<std::uint8_t>& pixels, const ResampleSpec& spec) {
  return {pixels.data(), spec.source.width, spec.source.height, spec.channels,
          std::ptrdiff_t{spec.source.width} * spec.channels};
}

// Tables at hand, rows dropped: the arithmetic alone.
void resample_warm(benchmark::State& state, const ResampleSpec& spec, Target target) {
  const std::vector<std::uint8_t> pixels =
      noise(static_cast<std::size_t>(spec.source.width) * spec.source.height * spec.channels);
  Workspace workspace(target);
  for (auto _ : state) {
    resample(workspace.plan(spec), view_of(pixels, spec), workspace,
             [](int, const std::uint8_t* row) { benchmark::DoNotOptimize(row); });
  }
}

// A plan for sizes never seen before.
void plan_cold(benchmark::State& state, const ResampleSpec& spec, Target target) {
  for (auto _ : state) {
    Workspace workspace(target);
    benchmark::DoNotOptimize(workspace.plan(spec));
  }
}

void resample_reference(benchmark::State& state, const ResampleSpec& spec) {
  const std::vector<std::uint8_t> pixels =
      noise(static_cast<std::size_t>(spec.source.width) * spec.source.height * spec.channels);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(spec.window.width) * spec.window.height * spec.channels);
  const std::ptrdiff_t stride = std::ptrdiff_t{spec.window.width} * spec.channels;
  for (auto _ : state) {
    reference::resample(spec, view_of(pixels, spec),
                        {out.data(), spec.window.width, spec.window.height, spec.channels, stride});
    benchmark::ClobberMemory();
  }
}

void add_resample() {
  for (const ResampleCase& one : resample_cases()) {
    const std::string name = one.name;
    for (const Target target : available_targets()) {
      const std::string on = "/" + std::string(name_of(target));
      benchmark::RegisterBenchmark(("resample/" + name + on).c_str(), resample_warm, one.spec, target)
          ->Unit(benchmark::kMicrosecond);
      benchmark::RegisterBenchmark(("plan/" + name + on).c_str(), plan_cold, one.spec, target)
          ->Unit(benchmark::kMicrosecond);
    }
    benchmark::RegisterBenchmark(("resample/" + name + "/reference").c_str(), resample_reference, one.spec)
        ->Unit(benchmark::kMicrosecond);
  }
}

struct StoreCase {
  const char* name;
  StoreSpec spec;
};

const std::vector<StoreCase>& store_cases() {
  static const Normalise kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  static const std::vector<StoreCase> cases = {
      {"uint8_nchw", {.dtype = DType::kUint8, .layout = Layout::kNchw}},
      {"uint8_nhwc", {.dtype = DType::kUint8, .layout = Layout::kNhwc}},
      {"float16_nchw_normalised", {.dtype = DType::kFloat16, .layout = Layout::kNchw, .normalise = kImageNet}},
      {"float32_nchw_normalised", {.dtype = DType::kFloat32, .layout = Layout::kNchw, .normalise = kImageNet}},
      {"float32_nhwc_normalised", {.dtype = DType::kFloat32, .layout = Layout::kNhwc, .normalise = kImageNet}},
      {"float32_nhwc_unit", {.dtype = DType::kFloat32, .layout = Layout::kNhwc}},
      {"float32_patches_normalised",
       {.dtype = DType::kFloat32, .normalise = kImageNet, .patches = Patches{14, 14, 2, 2}}},
      {"bfloat16_patches_normalised",
       {.dtype = DType::kBfloat16, .normalise = kImageNet, .patches = Patches{14, 14, 2, 2}}},
      {"float32_tiles_normalised", {.dtype = DType::kFloat32, .normalise = kImageNet, .patches = Patches{112, 112}}},
      {"uint8_grey", {.dtype = DType::kUint8, .channels = ChannelOrder::kGrey}},
  };
  return cases;
}

constexpr Size kStored{224, 224};

void store_rgb(benchmark::State& state, const StoreSpec& spec, Target target, Flip flip) {
  const std::vector<std::uint8_t> pixels = noise(static_cast<std::size_t>(kStored.width) * kStored.height * 3);
  const StoreTable table(spec);
  std::vector<std::byte> tensor(table.image_bytes(kStored));
  Workspace workspace(target);
  for (auto _ : state) {
    ImageStore store(table, tensor, kStored, 3, flip, workspace);
    for (int y = 0; y < kStored.height; ++y) store(y, pixels.data() + std::ptrdiff_t{y} * kStored.width * 3);
    benchmark::ClobberMemory();
  }
}

void store_reference(benchmark::State& state, const StoreSpec& spec) {
  const std::vector<std::uint8_t> pixels = noise(static_cast<std::size_t>(kStored.width) * kStored.height * 3);
  std::vector<std::byte> tensor(StoreTable(spec).image_bytes(kStored));
  for (auto _ : state) {
    reference::store(spec, {pixels.data(), kStored.width, kStored.height, 3, kStored.width * 3}, Flip::kNone, tensor);
    benchmark::ClobberMemory();
  }
}

void add_store() {
  for (const StoreCase& one : store_cases()) {
    const std::string name = "store/" + std::string(one.name);
    for (const Target target : available_targets()) {
      const std::string on = "/" + std::string(name_of(target));
      benchmark::RegisterBenchmark((name + on).c_str(), store_rgb, one.spec, target, Flip::kNone)
          ->Unit(benchmark::kMicrosecond);
      benchmark::RegisterBenchmark((name + "_flipped" + on).c_str(), store_rgb, one.spec, target, Flip::kHorizontal)
          ->Unit(benchmark::kMicrosecond);
    }
    benchmark::RegisterBenchmark((name + "/reference").c_str(), store_reference, one.spec)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_resample();
  add_store();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
