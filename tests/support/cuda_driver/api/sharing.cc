// Entry points: memory that processes share by descriptor.
#include <fcntl.h>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/devices.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::cuda {
namespace {

using sim::Memory;

CUresult enter_sharing() {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  return sim::settings().vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

UniqueFd duplicate(int file) {
  return UniqueFd(fcntl(file, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

MILLRACE_EXPORT cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*, int) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  *bytes = sim::kGranularity;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* wanted,
                            unsigned long long flags) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  if (size == 0 || size % sim::kGranularity != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (wanted->type != CU_MEM_ALLOCATION_TYPE_PINNED || wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(wanted->location.id));
  MILLRACE_RETURN_IF_FAILED(sim::fault_now("alloc", "cuMemCreate"));
  const bool shareable = wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  auto physical = sim::Physical::create(sim::index_of(wanted->location.id), size, shareable);
  if (physical == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = sim::objects().handles.add(std::move(physical));
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemRelease(CUmemGenericAllocationHandle handle) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  return sim::objects().handles.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemAddressReserve(CUdeviceptr* at, std::size_t size, std::size_t, CUdeviceptr, unsigned long long) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  if (size == 0 || size % sim::kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  *at = Memory::get().reserve(size);
  return *at == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemAddressFree(CUdeviceptr at, std::size_t size) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  return Memory::get().unreserve(at, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemMap(CUdeviceptr at, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  auto physical = sim::objects().handles.find(handle);
  if (physical == nullptr || offset != 0 || flags != 0 || size != physical->size()) return CUDA_ERROR_INVALID_VALUE;
  const bool mapped = Memory::get().map(at, {.size = size, .physical = std::move(physical)});
  return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemUnmap(CUdeviceptr at, std::size_t size) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  if (sim::Streams::get().is_using({at, size})) {
    sim::complain("memory unmapped that streams still use");
    sim::stick(*sim::current_context(), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  return Memory::get().unmap(at, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemSetAccess(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* access, std::size_t count) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  if (count != 1) return sim::refuse("access for several devices is not simulated", CUDA_ERROR_INVALID_VALUE);
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(access->location.id));
  const int device = sim::index_of(access->location.id);
  const bool is_peer = device != sim::current_context()->device;
  if (is_peer && !sim::settings().peers) return CUDA_ERROR_INVALID_DEVICE;
  return Memory::get().set_access(at, size, device, access->flags) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuMemExportToShareableHandle(void* to, CUmemGenericAllocationHandle handle, int type,
                                             unsigned long long flags) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  const auto physical = sim::objects().handles.find(handle);
  if (physical == nullptr || !physical->is_shareable()) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  UniqueFd file = duplicate(physical->file());
  if (!file) return CUDA_ERROR_OUT_OF_MEMORY;
  *static_cast<int*>(to) = file.release();
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* from, int type) {
  MILLRACE_RETURN_IF_FAILED(enter_sharing());
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  MILLRACE_RETURN_IF_FAILED(sim::fault_now("import", "cuMemImport"));
  UniqueFd file = duplicate(static_cast<int>(reinterpret_cast<std::intptr_t>(from)));
  auto physical = sim::Physical::adopt(std::move(file), sim::current_context()->device);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = sim::objects().handles.add(std::move(physical));
  return CUDA_SUCCESS;
}

}  // namespace millrace::cuda
