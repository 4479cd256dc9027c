// The CUDA kernels on a GPU: correct first, then how fast. run.sh compiles and runs it on a machine with nothing but a
// CUDA toolkit.
//
//   bench FOLDER [--checksums FILE] [--packed FOLDER] [--repeat N] [--images N] [--batch N] [--threads N] [--tiles N]
//         [--seconds S] [--only-check] [--every N]
//
// FOLDER has the images; figures take its photos/ where there is one. --packed: their packed forms, of which every second
// tensor is then made; --repeat: the comparison, so often. Exit status 1: a tensor is wrong.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "daemon/backend/cuda/worker/kernel_image.h"
#include "tests/bench/cuda/check.h"
#include "tests/bench/cuda/figures.h"
#include "tests/bench/cuda/nvjpeg_peer.h"

namespace millrace::kernels::cuda::bench {
namespace {

struct Options {
  std::string folder, checksums, packed;
  std::size_t images = 8192, every = 1, repeat = 1;
  BenchSettings settings;
  bool only_check = false;
};

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--only-check") {
      options.only_check = true;
      continue;
    }
    if (name.substr(0, 2) != "--") {
      options.folder = name;
      continue;
    }
    if (value == nullptr) return false;
    ++i;
    if (name == "--checksums")
      options.checksums = value;
    else if (name == "--packed")
      options.packed = value;
    else if (name == "--repeat")
      options.repeat = std::strtoul(value, nullptr, 10);
    else if (name == "--images")
      options.images = std::strtoul(value, nullptr, 10);
    else if (name == "--every")
      options.every = std::strtoul(value, nullptr, 10);
    else if (name == "--batch")
      options.settings.batch = std::strtoul(value, nullptr, 10);
    else if (name == "--tiles")
      options.settings.tiles = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
    else if (name == "--threads")
      options.settings.threads = std::atoi(value);
    else if (name == "--seconds")
      options.settings.seconds = std::atof(value);
    else
      return false;
  }
  return !options.folder.empty() && options.every > 0 && options.repeat > 0 && options.settings.batch > 1 &&
         options.settings.threads > 0 && options.images >= options.settings.batch;
}

template <class T>
T required(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

// On the runtime's first device. Its primary context, which the driver's API and the runtime share, is made first.
Kernels load_kernels() {
  MILLRACE_REQUIRE_CUDA(cudaSetDevice(0));
  MILLRACE_REQUIRE_CUDA(cudaFree(nullptr));
  const millrace::cuda::Driver& driver = *required(millrace::cuda::Driver::load());
  millrace::cuda::CUdevice device = 0;
  require(driver.checked(driver.cuDeviceGet(&device, 0), "cuDeviceGet"));
  return required(Kernels::load(driver, device, millrace::cuda::kernel_image()));
}

// Whether all is well.
bool check_all(const Options& options, const Kernels& kernels) {
  std::ifstream in(options.checksums);
  std::string wrong;
  auto lines = read_lines(in, wrong);
  if (!lines || lines->empty()) {
    std::printf("%s: no checksums (%s)\n", options.checksums.c_str(), wrong.c_str());
    return false;
  }
  std::vector<ChecksumLine> chosen;
  for (std::size_t i = 0; i < lines->size(); i += options.every) chosen.push_back((*lines)[i]);
  const auto files = read_files(options.folder);
  const auto packed = options.packed.empty() ? std::vector<ImageFile>() : read_files(options.packed);
  bool is_well = true;
  for (std::size_t i = 0; i < options.repeat; ++i) {
    const CheckCounts counts = check(chosen, files, packed, kernels);
    std::printf("checksums: %zu equal, %zu left to the CPU (%zu not in time), %zu wrong\n", counts.equal, counts.left,
                counts.not_in_time, counts.wrong);
    is_well = is_well && counts.wrong == 0 && counts.equal > 0;
  }
  return is_well;
}

void print_figures(const Options& options, const Kernels& kernels) {
  const auto photos = std::filesystem::path(options.folder) / "photos";
  const auto files = read_files(std::filesystem::is_directory(photos) ? photos.string() : options.folder);
  const ImagePool pool(files, options.images);
  const BenchSettings& settings = options.settings;
  const Limits limits = measure_limits();
  const double first = train_figure(pool, kernels, settings, kFirstCase);
  const double indexed = train_figure(pool, kernels, settings, kIndexedCase);
  for (const TrainCase& fast : kFastCases) train_figure(pool, kernels, settings, fast);
  for (const TrainCase& what : {kFirstCase, kIndexedCase, kFastCases[0]})
    profile_figures(pool, kernels, settings, limits, what);
  interference_figure(pool, kernels, settings, 5000);
  std::string why;
  const NvjpegLibrary* const nvjpeg = load_nvjpeg(why);
  if (nvjpeg == nullptr) {
    std::printf("peer.nvjpeg: not compared: %s\n", why.c_str());
    return;
  }
  double best = 0;
  for (const auto backend : {NvjpegBackend::kHardware, NvjpegBackend::kGpuHybrid})
    best = std::max(best, nvjpeg_figure(*nvjpeg, backend, pool, settings));
  if (best == 0) return;
  print_figure("cuda.train.first / peer.nvjpeg", first / best, "times");
  print_figure("cuda.train.indexed / peer.nvjpeg", indexed / best, "times");
}

int run(const Options& options) {
  const Kernels kernels = load_kernels();
  cudaDeviceProp properties{};
  MILLRACE_REQUIRE_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors, %d thread blocks of the tokeniser at once\n", properties.name,
              kernels.shape().multiprocessors, kernels.shape().tokenise_blocks);
  const bool checked = options.checksums.empty() || check_all(options, kernels);
  if (options.checksums.empty()) std::printf("checksums: not compared, for no file was given\n");
  if (!options.only_check) print_figures(options, kernels);
  return checked ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace millrace::kernels::cuda::bench

int main(int argc, char** argv) {
  millrace::kernels::cuda::bench::Options options;
  if (!millrace::kernels::cuda::bench::read_options(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: %s FOLDER [--checksums FILE] [--images N] [--batch N] [--threads N] [--tiles N]\n"
                 "       [--seconds S] [--only-check] [--every N]\n",
                 argv[0]);
    return 2;
  }
  try {
    return millrace::kernels::cuda::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
