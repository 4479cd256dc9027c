// Memory of one process in another.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "proto/base/unique_fd.h"
#include "proto/cuda/shared_memory.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kSharedBytes = std::size_t{8} << 20;
CUmemGenericAllocationHandle shareable(const Gpu& gpu) {
  const CUmemAllocationProp wanted = shared_memory_of(gpu.device);
  CUmemGenericAllocationHandle handle = 0;
  need(gpu.cu.cuMemCreate(&handle, kSharedBytes, &wanted, 0), "cuMemCreate");
  return handle;
}

// Where the memory is mapped, which its handle need not outlive.
CUdeviceptr map(const Gpu& gpu, CUmemGenericAllocationHandle handle, int access) {
  const Driver& cu = gpu.cu;
  CUdeviceptr at = 0;
  need(cu.cuMemAddressReserve(&at, kSharedBytes, 0, 0, 0), "cuMemAddressReserve");
  need(cu.cuMemMap(at, kSharedBytes, 0, handle, 0), "cuMemMap");
  const CUmemAccessDesc desc{.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device}, .flags = access};
  need(cu.cuMemSetAccess(at, kSharedBytes, &desc, 1), "cuMemSetAccess");
  need(cu.cuMemRelease(handle), "cuMemRelease");
  return at;
}

int last_byte(const Gpu& gpu, CUdeviceptr at, CUstream stream) {
  Pinned<unsigned char> byte(gpu, 1);
  need(gpu.cu.cuMemcpyDtoHAsync_v2(byte.data(), at + kSharedBytes - 1, 1, stream), "DtoH");
  gpu.synchronise(stream);
  return byte[0];
}

void say_used(const Gpu& gpu) {
  std::size_t free_bytes = 0, total = 0;
  need(gpu.cu.cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo");
  std::printf("used %zu MiB\n", (total - free_bytes) >> 20);
  std::fflush(stdout);
}

void wait_for_line() {
  std::string line;
  std::getline(std::cin, line);
}

// Says where the descriptor is, and after a line what the importer made of the memory.
int share(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUmemGenericAllocationHandle handle = shareable(gpu);
  int descriptor = -1;
  need(cu.cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), "export");
  const CUdeviceptr at = map(gpu, handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  need(cu.cuMemsetD8Async(at, 0x21, kSharedBytes, stream), "memset");
  gpu.synchronise(stream);
  std::printf("at /proc/%d/fd/%d\n", getpid(), descriptor);
  std::fflush(stdout);
  wait_for_line();
  std::printf("holds 0x%x\n", last_byte(gpu, at, stream));
  return 0;
}

CUmemGenericAllocationHandle import(const Gpu& gpu, std::string_view path) {
  const UniqueFd file(open(std::string(path).c_str(), O_RDWR | O_CLOEXEC));
  CUmemGenericAllocationHandle handle = 0;
  void* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  const CUresult result =
      gpu.cu.cuMemImportFromShareableHandle(&handle, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  say("import", result);
  return handle;
}

// PATH [write | watch].
int use_shared(Arguments arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const CUmemGenericAllocationHandle handle = import(gpu, arguments[0]);
  if (handle == 0) return 0;
  const bool writes = arguments[1] == "write", watches = arguments[1] == "watch";
  const CUdeviceptr at = map(gpu, handle, writes ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ);
  std::printf("holds 0x%x\n", last_byte(gpu, at, stream));
  say_used(gpu);
  if (watches) {
    wait_for_line();
    std::printf("still holds 0x%x\n", last_byte(gpu, at, stream));
    say_used(gpu);
  }
  say("memset", gpu.cu.cuMemsetD8Async(at, 0x43, kSharedBytes, stream));
  say("synchronise", gpu.cu.cuStreamSynchronize(stream));
  return 0;
}

int free_reserved(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUdeviceptr at = map(gpu, shareable(gpu), CU_MEM_ACCESS_FLAGS_PROT_READ);
  say("free while mapped", cu.cuMemAddressFree(at, kSharedBytes));
  say("unmap", cu.cuMemUnmap(at, kSharedBytes));
  say("free", cu.cuMemAddressFree(at, kSharedBytes));
  say("free twice", cu.cuMemAddressFree(at, kSharedBytes));
  return 0;
}

// Memory that is made when other memory was let go.
int made_again(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  for (int i = 0; i < 2; ++i) {
    const CUdeviceptr at = map(gpu, shareable(gpu), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    std::printf("holds 0x%x\n", last_byte(gpu, at, stream));
    need(gpu.cu.cuMemsetD8Async(at, 0x21, kSharedBytes, stream), "memset");
    gpu.synchronise(stream);
    need(gpu.cu.cuMemUnmap(at, kSharedBytes), "cuMemUnmap");
  }
  return 0;
}

// While a stream has yet to write it; `waits`: once it has.
int unmap_early(Arguments arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr at = map(gpu, shareable(gpu), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  Gate gate(gpu);
  gate.hold(stream);
  need(cu.cuMemsetD8Async(at + kSharedBytes / 2, 1, 1, stream), "memset");
  if (arguments[0] == "waits") {
    gate.open();
    gpu.synchronise(stream);
  }
  say("unmap", cu.cuMemUnmap(at, kSharedBytes));
  gate.open();
  say("synchronise", cu.cuStreamSynchronize(stream));
  say("free", cu.cuMemAddressFree(at, kSharedBytes));
  return 0;
}

constexpr Scene kSharingScenes[] = {{"share", share},
                                    {"use shared", use_shared},
                                    {"free reserved", free_reserved},
                                    {"unmap early", unmap_early},
                                    {"made again", made_again}};

}  // namespace

std::span<const Scene> sharing_scenes() {
  return kSharingScenes;
}

}  // namespace millrace::cuda_scenes
