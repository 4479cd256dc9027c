// The GPU kernels as a build embeds them, and what is said where a driver does not take them. The driver is a table of
// this test's functions.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <cstring>

#include "daemon/backend/cuda/worker/batch_launch.h"
#include "daemon/backend/cuda/worker/kernel_image.h"
#include "tests/support/skip.h"

namespace millrace::cuda {
namespace {

// What the driver answers; and what was asked of it.
struct Answers {
  CUresult load = CUDA_SUCCESS;
  CUresult occupancy = CUDA_SUCCESS;
  int cuda_version = 13000, major = 9, minor = 0;
  int loaded = 0, unloaded = 0;
};
Answers answers;

int attribute(int which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return answers.major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return answers.minor;
    default:
      return 132;
  }
}

Driver driver_with(const Answers& given) {
  answers = given;
  Driver driver;
  driver.cuGetErrorName = [](CUresult, const char** name) -> CUresult {
    *name = "CUDA_ERROR_OF_THE_TEST";
    return CUDA_SUCCESS;
  };
  driver.cuDriverGetVersion = [](int* version) -> CUresult { return *version = answers.cuda_version, CUDA_SUCCESS; };
  driver.cuDeviceGetAttribute = [](int* value, int which, CUdevice) -> CUresult {
    return *value = attribute(which), CUDA_SUCCESS;
  };
  driver.cuModuleLoadData = [](CUmodule* module, const void*) -> CUresult {
    if (answers.load != CUDA_SUCCESS) return answers.load;
    ++answers.loaded;
    *module = reinterpret_cast<CUmodule>(&answers);
    return CUDA_SUCCESS;
  };
  driver.cuModuleUnload = [](CUmodule) -> CUresult { return ++answers.unloaded, CUDA_SUCCESS; };
  driver.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) -> CUresult { return CUDA_SUCCESS; };
  driver.cuFuncSetAttribute = [](CUfunction, int, int) -> CUresult { return CUDA_SUCCESS; };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, std::size_t) -> CUresult {
    return *blocks = 7, answers.occupancy;
  };
  return driver;
}

constexpr std::array<std::byte, 1> kImage{};

Error rejected(const Answers& given) {
  const Driver driver = driver_with(given);
  const auto kernels = Kernels::load(driver, 0, kImage);
  REQUIRE_FALSE(kernels);
  return kernels.error();
}

TEST_CASE("the embedded image is a whole fat binary", "[cuda][launch]") {
  const auto image = kernel_image();
  if (image.empty()) {
    skip_loudly("the embedded GPU kernels: this build had no CUDA compiler");
    return;
  }

  struct {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t other_bytes;
  } header;
  REQUIRE(image.size() > sizeof header);
  std::memcpy(&header, image.data(), sizeof header);

  CHECK(header.magic == 0xBA55ED50);
  CHECK(header.header_bytes + header.other_bytes == image.size());
  CHECK(reinterpret_cast<std::uintptr_t>(image.data()) % 64 == 0);
}

TEST_CASE("a build without GPU kernels says so, and asks the driver nothing", "[cuda][launch]") {
  const auto kernels = Kernels::load(Driver{}, 0, {});

  REQUIRE_FALSE(kernels);
  CHECK(kernels.error().code == Code::kUnsupported);
  CHECK(kernels.error().message ==
        "this build has no GPU kernels: build it where a CUDA compiler of version 13 or newer is");
}

TEST_CASE("a driver older than the kernels' compiler is told by its CUDA version", "[cuda][launch]") {
  const CUresult result = GENERATE(CUresult{CUDA_ERROR_INVALID_IMAGE}, CUresult{CUDA_ERROR_NO_BINARY_FOR_GPU},
                                   CUresult{CUDA_ERROR_UNSUPPORTED_PTX_VERSION});

  const Error error = rejected({.load = result, .cuda_version = 12080});

  CHECK(error.code == Code::kUnsupported);
  CHECK(error.message ==
        "GPU kernels of this build want a driver of version 580 or newer; this one's CUDA version is 12.8");
}

TEST_CASE("a GPU older than the kernels is told by its compute capability", "[cuda][launch]") {
  const Error error = rejected({.load = CUDA_ERROR_NO_BINARY_FOR_GPU, .cuda_version = 12080, .major = 7, .minor = 5});

  CHECK(error.code == Code::kUnsupported);
  CHECK(error.message == "this GPU's compute capability 7.5 is older than 8.0, the oldest that has GPU kernels");
}

TEST_CASE("an image rejected for no reason that we know is told with what there is", "[cuda][launch]") {
  const Error error = rejected({.load = CUDA_ERROR_INVALID_IMAGE});

  CHECK(error.code == Code::kUnsupported);
  CHECK(
      error.message ==
      "the driver takes none of this build's GPU kernels: CUDA_ERROR_OF_THE_TEST (200), its CUDA version is 13.0, the "
      "GPU's compute capability 9.0; a newer driver may");
}

TEST_CASE("what else fails while kernels are loaded is no verdict on the image", "[cuda][launch]") {
  CHECK(rejected({.load = CUDA_ERROR_OUT_OF_MEMORY}).code == Code::kExhausted);
  CHECK(rejected({.load = CUDA_ERROR_ECC_UNCORRECTABLE}).code == Code::kUnavailable);
}

TEST_CASE("a module is unloaded once, by its last owner", "[cuda][launch]") {
  const Driver driver = driver_with({});
  {
    auto first = Kernels::load(driver, 0, kImage);
    REQUIRE(first);
    CHECK(first->shape().multiprocessors == 132);
    CHECK(first->shape().tokenise_blocks == 7 * 132);
    const Kernels second = *std::move(first);
    CHECK(answers.unloaded == 0);
  }

  CHECK(answers.loaded == 1);
  CHECK(answers.unloaded == 1);
}

TEST_CASE("a module whose kernels cannot be set up is unloaded", "[cuda][launch]") {
  const Error error = rejected({.occupancy = CUDA_ERROR_INVALID_HANDLE});

  CHECK(error.code == Code::kUnavailable);
  CHECK(answers.unloaded == 1);
}

}  // namespace
}  // namespace millrace::cuda
