// A CUDA backend on the simulated driver, files for it, and the processor's tensors of them. Values and functions.
#pragma once

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "daemon/backend/cpu/cpu_backend.h"
#include "daemon/backend/cuda/cuda_backend.h"
#include "daemon/formats/probe.h"
#include "tests/conformance/bench_of_backend.h"
#include "tests/support/host/decoder_processes.h"
#include "tests/support/host/process.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

using Variables = std::vector<std::pair<std::string, std::string>>;
using Images = std::vector<std::vector<std::byte>>;

// The simulated driver of processes that are started while it lives.
class Driver {
 public:
  explicit Driver(const Variables& settings) {
    for (const auto& [name, value] : settings) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Driver() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

 private:
  std::vector<std::string> names_;
};

inline CudaSettings small_settings() {
  return {.wanted = Wanted::kYes,
          .lanes = 1,
          .memory = 128_MiB,
          .staging = 32_MiB,
          .hang = std::chrono::minutes(5),  // simulated kernels are slow under a sanitizer
          .worker = bin_folder() + "/millrace-cuda"};
}

inline Result<std::vector<std::unique_ptr<Backend>>> make(const CudaSettings& cuda) {
  Settings settings;
  settings.groups.of<CudaSettings>() = cuda;
  return make_cuda_backends(settings, {});
}

inline std::unique_ptr<Backend> start_gpu(const CudaSettings& cuda = small_settings()) {
  auto backends = make(cuda);
  if (!backends) FAIL(backends.error().message);
  REQUIRE(backends->size() == 1);
  return std::move(backends->front());
}

inline pid_t gpu_process() {
  const std::vector<pid_t> owners = child_processes(::getpid(), "millrace-cuda");
  REQUIRE(owners.size() == 1);
  return owners[0];
}

// With Huffman tables of its own, each.
inline Images jpegs(std::uint32_t count, std::uint32_t seed, std::uint32_t side = 90) {
  Images images;
  for (std::uint32_t i = 0; i < count; ++i)
    images.push_back(make_jpeg({.pixels = make_pixels(side + 7 * i, side, 3, seed + i), .optimise = true}));
  return images;
}

struct Came {
  std::vector<std::vector<std::byte>> tensors;  // empty: none
  std::vector<Code> codes;                      // of those without
};

// Each has a planner of its own in the process.
struct Stored {
  Size size;
  Layout layout = Layout::kNchw;
  Channels channels = Channels::kRgb;
};
inline constexpr Stored kA{{40, 40}}, kB{{48, 48}, Layout::kNhwc}, kC{{56, 56}, Layout::kNchw, Channels::kBgr};

inline Came make(Backend& backend, const Images& images, const Stored& stored) {
  JobOnTheBench bench({.layout = stored.layout, .channels = stored.channels});
  for (const auto& bytes : images) {
    const Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info);
    EncodedImage image = encoded(bytes, info->format, info->stored);
    const SampleGeometry geometry = resized_whole(image, stored.size);
    bench.add(std::move(image), geometry);
  }
  Collector collector;
  REQUIRE(backend.try_submit(bench.job(collector)));
  const Finished finished = collector.wait_for_one();
  Came came;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& error = finished.outcomes[i].error;
    if (error) came.codes.push_back(error->code);
    came.tensors.push_back(error ? std::vector<std::byte>() : bench.tensors[i]->copy());
  }
  return came;
}

inline Came on_the_processor(const Images& images, const Stored& stored) {
  CpuSettings settings;
  settings.lanes = 1;
  auto backend = CpuBackend::create(settings);
  REQUIRE(backend);
  return make(**backend, images, stored);
}

// How many tensors are there; those that are have to be the processor's.
inline std::size_t count_right(const Came& came, const Came& expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < came.tensors.size(); ++i) {
    if (came.tensors[i].empty()) continue;
    REQUIRE(came.tensors[i] == expected.tensors[i]);
    ++count;
  }
  return count;
}

// In the place of millrace-cuda: it does what that does for the list and for the first owner; what comes next hangs.
inline std::string hangs_at_the_third(const TempFolder& folder) {
  const std::string program = folder / "millrace-cuda", began = folder / "began";
  write_file(program, "#!/bin/sh\nread -r times < " + began + "\necho $((times + 1)) > " + began +
                          "\n[ $times -lt 2 ] && exec " + bin_folder() + "/millrace-cuda\nexec sleep 1000\n");
  write_file(began, std::string("0\n"));
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  return program;
}

}  // namespace millrace
