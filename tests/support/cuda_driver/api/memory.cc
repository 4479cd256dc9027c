// Entry points: device memory, registered memory, copies.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/control.h"
#include "tests/support/cuda_driver/illegal_access.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::cuda {
namespace {

using sim::EngineKind, sim::Memory;

constexpr std::size_t kAlignment = 256;  // of what cuMemAlloc returns
constexpr unsigned char kNotYet = 0xDB;  // what the target of a copy holds until its turn has come

// The host's part of a copy is no device memory.
CUresult enter_copy(CUstream of, const void* host, std::shared_ptr<Stream>& stream) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  if (Memory::get().is_device(host))
    return sim::refuse("a device address given as host memory", CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

// What a copy uses. Memory of the host that is not registered is no business of the device's.
std::vector<sim::Span> uses_of(CUdeviceptr device, const void* host, std::size_t size, bool pinned) {
  std::vector<sim::Span> uses{{device, size}};
  if (pinned) uses.push_back({reinterpret_cast<CUdeviceptr>(host), size});
  return uses;
}

// Where an operation finds device memory, which it says to touch. Throws IllegalAddress.
std::byte* use(CUdeviceptr at, std::size_t size, bool write) {
  std::byte* const found = Memory::get().find(at, size, write);
  if (found == nullptr) throw sim::IllegalAddress{};
  sim::touch(at, size, write);
  return found;
}

// Of a copy of `size` bytes, those that are moved.
std::size_t moved(std::size_t size) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(size, sim::settings().copied));
}

// Memory that was registered when the copy was asked for has to be so until it is made.
// Streams may be in each other's way there as well.
void use_pinned(const void* at, std::size_t size, bool write) {
  if (sim::objects().pinned.holds(at, size)) return sim::touch(reinterpret_cast<CUdeviceptr>(at), size, write);
  sim::complain("memory was unregistered before a copy's turn came");
  throw sim::IllegalAddress{};
}

// Whether all pages of [at, at + size) may be read, or written, by this process: those of others cannot be locked.
// Where the kernel does not say, they are.
bool has_access(const void* at, std::size_t size, bool write) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (maps == nullptr) return true;
  auto from = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t to = from + size;
  char line[8192];  // each ends with the path of a file
  while (from < to && std::fgets(line, sizeof(line), maps.get()) != nullptr) {
    std::uintptr_t begin = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, access) != 3 || end <= from) continue;
    if (begin > from || access[0] != 'r' || (write && access[1] != 'w')) return false;
    from = end;
  }
  return from >= to;
}

}  // namespace

MILLRACE_EXPORT cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  const std::uint64_t used = sim::Control::get().used(sim::current_context()->device);
  *total = sim::settings().vram_bytes;
  *free_bytes = *total - std::min<std::uint64_t>(used, *total);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemAlloc_v2(CUdeviceptr* at, std::size_t size) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  MILLRACE_RETURN_IF_FAILED(sim::fault_now("alloc", "cuMemAlloc"));
  const std::size_t pages = sim::rounded_up(size, sim::kPage);
  auto physical = sim::Physical::create(sim::current_context()->device, pages, false);
  const CUdeviceptr begin = physical == nullptr ? 0 : Memory::get().reserve(pages);
  if (begin == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  // At the end of its pages: what a kernel does behind it is caught.
  *at = begin + pages - sim::rounded_up(size, kAlignment);
  const bool mapped = Memory::get().map(
      *at,
      {.size = size, .physical = std::move(physical), .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE, .allocated = true});
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

MILLRACE_EXPORT cuMemFree_v2(CUdeviceptr at) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  if (!Memory::get().range_of(at, begin, size) || begin != at) return CUDA_ERROR_INVALID_VALUE;
  sim::Streams::get().wait_for_uses({at, size});
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());  // what came of that
  return Memory::get().unmap(at, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemGetAddressRange_v2(CUdeviceptr* begin, std::size_t* size, CUdeviceptr at) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  return Memory::get().range_of(at, *begin, *size) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

MILLRACE_EXPORT cuMemHostRegister_v2(void* at, std::size_t size, unsigned flags) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  if (at == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool read_only = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  if (read_only && !sim::settings().read_only_register) return CUDA_ERROR_NOT_SUPPORTED;
  MILLRACE_RETURN_IF_FAILED(sim::fault_now("register", "cuMemHostRegister"));
  if (!has_access(at, size, !read_only))
    return sim::refuse("memory registered that this process may not write, or not even read", CUDA_ERROR_INVALID_VALUE);
  return sim::objects().pinned.add(at, size) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

MILLRACE_EXPORT cuMemHostUnregister(void* at) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_driver());
  const std::size_t size = sim::objects().pinned.size_of(at);
  // Whatever went wrong: its owner may free it when this returns.
  if (size != 0) sim::Streams::get().wait_for_uses({reinterpret_cast<CUdeviceptr>(at), size});
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  return sim::objects().pinned.remove(at) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

MILLRACE_EXPORT cuMemHostGetDevicePointer_v2(CUdeviceptr* at, void* host, unsigned) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  if (!sim::objects().pinned.holds(host, 1)) return CUDA_ERROR_INVALID_VALUE;
  *at = reinterpret_cast<CUdeviceptr>(host);  // one address for both, as with unified addressing
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t size, CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(enter_copy(of, from, stream));
  if (!Memory::get().is_for(sim::current_context()->device, to, size, true)) return CUDA_ERROR_INVALID_VALUE;
  if (size == 0) return CUDA_SUCCESS;
  // What is registered is read when its turn comes, anything else now.
  std::shared_ptr<std::vector<std::byte>> staged;
  if (!sim::objects().pinned.holds(from, size)) {
    sim::complain("an asynchronous copy from memory that is not registered");
    const auto* const begin = static_cast<const std::byte*>(from);
    staged = std::make_shared<std::vector<std::byte>>(begin, begin + size);
  }
  const auto run = [=]() -> CUresult {
    if (staged == nullptr) use_pinned(from, size, false);
    std::memcpy(use(to, size, true), staged == nullptr ? from : staged->data(), moved(size));
    return CUDA_SUCCESS;
  };
  return sim::submit(*stream, {.engine = EngineKind::kToDevice,
                               .what = "HtoD",
                               .uses = uses_of(to, from, size, staged == nullptr),
                               .run = run});
}

MILLRACE_EXPORT cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t size, CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(enter_copy(of, to, stream));
  if (!Memory::get().is_for(sim::current_context()->device, from, size, false)) return CUDA_ERROR_INVALID_VALUE;
  if (size == 0) return CUDA_SUCCESS;
  const bool pinned = sim::objects().pinned.holds(to, size);
  if (!pinned) sim::complain("an asynchronous copy to memory that is not registered");
  std::memset(to, kNotYet, moved(size));
  const auto run = [=]() -> CUresult {
    if (pinned) use_pinned(to, size, true);
    std::memcpy(to, use(from, size, false), moved(size));
    return CUDA_SUCCESS;
  };
  MILLRACE_RETURN_IF_FAILED(sim::submit(
      *stream, {.engine = EngineKind::kToHost, .what = "DtoH", .uses = uses_of(from, to, size, pinned), .run = run}));
  return pinned ? CUDA_SUCCESS : stream->synchronise();
}

MILLRACE_EXPORT cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  const auto run = [=]() -> CUresult {
    const std::byte* const begin = use(from, size, false);
    std::memmove(use(to, size, true), begin, moved(size));
    return CUDA_SUCCESS;
  };
  return sim::submit(*stream,
                     {.engine = EngineKind::kCompute, .what = "DtoD", .uses = {{to, size}, {from, size}}, .run = run});
}

MILLRACE_EXPORT cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t size, CUstream of) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(of, stream));
  const auto run = [=]() -> CUresult {
    std::memset(use(to, size, true), value, size);
    return CUDA_SUCCESS;
  };
  return sim::submit(*stream, {.engine = EngineKind::kCompute, .what = "memset", .uses = {{to, size}}, .run = run});
}

}  // namespace millrace::cuda
