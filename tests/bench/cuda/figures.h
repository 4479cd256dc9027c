// The figures: training crops from pinned memory, the GPU's own limits beside them, and what decoding costs a training
// step. Each prints its lines: name, value, unit, conditions.
#pragma once

#include "daemon/backend/cuda/worker/batch_launch.h"
#include "tests/bench/cuda/image_pool.h"
#include "tests/bench/cuda/recipes.h"

namespace millrace::kernels::cuda::bench {

using millrace::cuda::Kernels;

struct BenchSettings {
  std::size_t batch = 256;
  int threads = 4;  // of the host; each with `runners` batches on the GPU
  int runners = 3;
  double seconds = 5;         // of each figure
  std::uint32_t tiles = 512;  // see PlannerSettings::wanted_tiles
};

void print_figure(const char* name, double value, const char* unit, const char* conditions = "");

// Bytes a second of large copies, measured.
struct Limits {
  double to_gpu = 0;  // over PCIe, from pinned memory
  double on_gpu = 0;  // read and written together
};
Limits measure_limits();

enum class Start { kFirst, kIndexed };

// RandomResizedCrop to kTrain's tensors.
struct TrainCase {
  const char* name;  // behind "cuda.train." and "cuda.profile."
  Start start;
  Fidelity fidelity = Fidelity::kExact;
};
inline constexpr TrainCase kFirstCase{"first", Start::kFirst};
inline constexpr TrainCase kIndexedCase{"indexed", Start::kIndexed};
inline constexpr TrainCase kFastCases[] = {{"first.fast", Start::kFirst, Fidelity::kFast},
                                           {"indexed.fast", Start::kIndexed, Fidelity::kFast}};

// Images a second, copies included.
double train_figure(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings,
                    const TrainCase& what);

// Time by kernel, SM-microseconds an image, shares of the limits; one batch at a time.
void profile_figures(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings, const Limits& limits,
                     const TrainCase& what);

// cuda.interference: how much longer a training step's matrix products take while images are decoded at `rate` a second
// on a stream of low priority.
void interference_figure(const ImagePool& pool, const Kernels& kernels, const BenchSettings& settings, double rate);

}  // namespace millrace::kernels::cuda::bench
