// Launches from a plan to tensors: the driver is a table of this test's functions, whose device memory is the host's
// and whose kernels are those of the host executor, each done at once.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "daemon/backend/cuda/worker/batch_launch.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/plan/host_run.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using namespace kernels::cuda;

constexpr std::byte kUnwritten{0xA5};
const auto kStream = reinterpret_cast<cuda::CUstream>(8);
int calls = 0;
char tokenise_entry, reconstruct_entry;  // their addresses are the kernels' handles

cuda::CUfunction handle_of(char& entry) {
  return reinterpret_cast<cuda::CUfunction>(&entry);
}

cuda::CUresult launched(cuda::CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                        unsigned, unsigned shared, cuda::CUstream stream, void** arguments, void**) {
  ++calls;
  REQUIRE(stream == kStream);
  const Grid grid{static_cast<int>(blocks), static_cast<int>(threads), 5};
  if (function == handle_of(tokenise_entry)) {
    REQUIRE((threads == kTokeniseThreads && shared == sizeof(TokeniseShared)));
    const TokeniseArgs& args = *static_cast<const TokeniseArgs*>(arguments[0]);
    run_grid(grid, [&](HostBlock& block) { tokenise(block, args); });
  } else {
    REQUIRE((function == handle_of(reconstruct_entry) && threads == kTileThreads && shared == kTileBytes));
    const ReconstructArgs& args = *static_cast<const ReconstructArgs*>(arguments[0]);
    run_grid(grid, [&](HostBlock& block) { reconstruct_tile(block, args); });
  }
  return cuda::CUDA_SUCCESS;
}

cuda::CUresult copied(void* to, const void* from, std::size_t bytes, cuda::CUstream stream) {
  ++calls;
  REQUIRE(stream == kStream);
  std::memcpy(to, from, bytes);
  return cuda::CUDA_SUCCESS;
}

void* at(cuda::CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

cuda::Driver host_driver() {
  cuda::Driver driver;
  driver.cuModuleLoadData = [](cuda::CUmodule* module, const void*) -> cuda::CUresult {
    return *module = reinterpret_cast<cuda::CUmodule>(&calls), cuda::CUDA_SUCCESS;
  };
  driver.cuModuleUnload = [](cuda::CUmodule) -> cuda::CUresult { return cuda::CUDA_SUCCESS; };
  driver.cuModuleGetFunction = [](cuda::CUfunction* function, cuda::CUmodule, const char* name) -> cuda::CUresult {
    *function = handle_of(std::strcmp(name, "millrace_tokenise") == 0 ? tokenise_entry : reconstruct_entry);
    return cuda::CUDA_SUCCESS;
  };
  driver.cuFuncSetAttribute = [](cuda::CUfunction, int, int) -> cuda::CUresult { return cuda::CUDA_SUCCESS; };
  driver.cuDeviceGetAttribute = [](int* value, int, cuda::CUdevice) -> cuda::CUresult {
    return *value = 1, cuda::CUDA_SUCCESS;
  };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor =
      [](int* blocks, cuda::CUfunction, int, std::size_t) -> cuda::CUresult { return *blocks = 2, cuda::CUDA_SUCCESS; };
  driver.cuLaunchKernel = launched;
  driver.cuMemcpyHtoDAsync_v2 = [](cuda::CUdeviceptr to, const void* from, std::size_t bytes, cuda::CUstream stream) {
    return copied(at(to), from, bytes, stream);
  };
  driver.cuMemcpyDtoHAsync_v2 = [](void* to, cuda::CUdeviceptr from, std::size_t bytes, cuda::CUstream stream) {
    return copied(to, at(from), bytes, stream);
  };
  driver.cuMemcpyDtoDAsync_v2 = [](cuda::CUdeviceptr to, cuda::CUdeviceptr from, std::size_t bytes,
                                   cuda::CUstream stream) { return copied(at(to), at(from), bytes, stream); };
  driver.cuMemsetD8Async = [](cuda::CUdeviceptr to, unsigned char value, std::size_t bytes,
                              cuda::CUstream stream) -> cuda::CUresult {
    ++calls;
    REQUIRE(stream == kStream);
    return std::memset(at(to), value, bytes), cuda::CUDA_SUCCESS;
  };
  return driver;
}

// Memory as a GPU gives it: aligned to 256 bytes, and full of what was there before.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment))), size_(bytes) {
    std::fill_n(bytes_.get(), size_, kUnwritten);
  }
  cuda::CUdeviceptr address() const { return reinterpret_cast<cuda::CUdeviceptr>(bytes_.get()); }
  std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{256};
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  std::unique_ptr<std::byte, Delete> bytes_;
  std::size_t size_;
};

// Files of two samplings with Huffman tables of their own, one of which is refused before launch.
struct Batch {
  explicit Batch(std::uint32_t seed) {
    for (std::uint32_t i = 0; i < 5; ++i)
      add(make_jpeg({.pixels = make_pixels(90 + 10 * i, 70, 3, seed + i),
                     .h_samp = 1 + static_cast<int>(i % 2),
                     .v_samp = 1,
                     .progressive = i == 3,
                     .optimise = true}));
    for (std::size_t i = 0; i < files.size(); ++i)
      requests.push_back({.file_untrusted = {reinterpret_cast<const std::uint8_t*>(files[i].data()), files[i].size()},
                          .at = places[i],
                          .crop = {3, 2, 80, 60}});
  }
  void add(const std::vector<std::byte>& file) {
    places.push_back(encoded.size());
    files.push_back(file);
    for (const std::byte byte : file) encoded.push_back(std::to_integer<std::uint8_t>(byte));
  }
  std::vector<std::vector<std::byte>> files;
  std::vector<std::size_t> places;
  std::vector<std::uint8_t> encoded;
  std::vector<ImageRequest> requests;
};

struct Launched {
  std::vector<std::byte> tensors;
  std::vector<Status> statuses;
};

Launched launch(const cuda::Kernels& kernels, const BatchPlan& plan, const Batch& batch, const DeviceMemory& tables) {
  const WorkspaceLayout layout = cuda::workspace_layout(plan, kernels.shape());
  const DeviceMemory encoded(batch.encoded.size()), workspace(layout.bytes),
      tensors(plan.tensor_bytes * batch.requests.size());
  std::memcpy(encoded.bytes().data(), batch.encoded.data(), batch.encoded.size());
  std::vector<std::byte> upload(layout.upload_bytes);
  write_upload(plan, layout, upload);
  Launched made{{}, std::vector<Status>(plan.jobs.size(), Status::kNotHere)};
  const auto done = kernels.launch(plan, layout,
                                   {.encoded = encoded.address(),
                                    .tables = tables.address(),
                                    .tensors = tensors.address(),
                                    .workspace = workspace.address(),
                                    .upload = upload.data(),
                                    .statuses = made.statuses.data()},
                                   kStream);
  REQUIRE(done);
  made.tensors.assign(tensors.bytes().begin(), tensors.bytes().end());
  return made;
}

TEST_CASE("launched batches are those of the host executor, byte for byte", "[cuda][launch]") {
  const cuda::Driver driver = host_driver();
  constexpr std::byte kImage[1]{};
  const auto kernels = cuda::Kernels::load(driver, 0, kImage);
  REQUIRE(kernels);
  const BatchRecipe recipe{.size = {40, 32}, .store = {.dtype = kernels::DType::kFloat16}};
  Planner planner(recipe, {.table_slots = 20});  // the second batch's tables go round
  HostRunner runner;
  const Batch batches[] = {Batch(1), Batch(50)};
  const DeviceMemory tables(planner.plan({}).table_slots * sizeof(DecodeTable));

  for (std::size_t i = 0; i < 2; ++i) {
    const Batch& batch = batches[i];
    const BatchPlan& plan = planner.plan(batch.requests);
    REQUIRE(plan.jobs.size() == 4);
    REQUIRE(plan.table_runs.size() == i + 1);
    const Launched made = launch(*kernels, plan, batch, tables);
    const HostBatch expected = runner.run(plan, batch.encoded, 9);

    CHECK((made.statuses == std::vector<Status>(4, Status::kDone)));
    CHECK((made.tensors == expected.tensors));
  }
}

TEST_CASE("with no job planned nothing is launched", "[cuda][launch]") {
  const cuda::Driver driver = host_driver();
  constexpr std::byte kImage[1]{};
  const auto kernels = cuda::Kernels::load(driver, 0, kImage);
  REQUIRE(kernels);
  Planner planner({.size = {40, 32}});
  calls = 0;

  const BatchPlan& plan = planner.plan({});

  REQUIRE(kernels->launch(plan, cuda::workspace_layout(plan, kernels->shape()), {}, kStream));
  CHECK(calls == 0);
}

}  // namespace
}  // namespace millrace
