// Device memory: memfds, each mapped into a window of addresses. A device pointer is an address in a reservation that
// stays without access for ever: a thread that dereferences it on the host dies there. Copies and kernels use the
// window, which lies elsewhere. Addresses are never given twice in a process and have gaps between them: use after free
// and overruns are caught as well.
//
//   device pointers  |....|aaaa|....|bbbbbbbb|....      PROT_NONE, always
//   window           |....|aaaa|....|bbbbbbbb|....      the memfds, where mapped
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "proto/cuda/driver_api.h"

namespace millrace::sim {

using cuda::CUdeviceptr;

// Bytes of a device. Immutable.
class Physical {
 public:
  // Charges this process. Null: the device has no room.
  static std::shared_ptr<Physical> create(int device, std::size_t size, bool shareable);
  // Another process's, by descriptor; its own process is charged. Null: the descriptor is none of device memory.
  static std::shared_ptr<Physical> adopt(UniqueFd file, int device);

  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
  ~Physical();

  int file() const { return file_.get(); }
  std::size_t size() const { return size_; }
  bool is_shareable() const { return shareable_; }

 private:
  Physical(int device, std::size_t size) : device_(device), size_(size) {}
  bool make_file();

  const int device_;
  const std::size_t size_;
  bool shareable_ = true, charged_ = false;
  UniqueFd file_;
};

// Where physical memory is mapped.
struct Range {
  std::size_t size = 0;
  std::shared_ptr<Physical> physical;
  int access = cuda::CU_MEM_ACCESS_FLAGS_PROT_NONE;  // the most that a device has
  std::map<int, int> by_device{};                    // what each has, of what cuMemMap mapped
  bool allocated = false;                            // by cuMemAlloc, not cuMemMap
};

class Memory {
 public:
  static Memory& get();  // never destroyed

  // Addresses of their own; 0: none are left. `size`: a multiple of a page.
  CUdeviceptr reserve(std::size_t size);
  bool unreserve(CUdeviceptr at, std::size_t size);
  // False: not reserved, or mapped already. Pages are mapped whole; what of the first lies before `at` is in no range.
  bool map(CUdeviceptr at, Range range);
  bool set_access(CUdeviceptr at, std::size_t size, int device, int access);
  bool unmap(CUdeviceptr at, bool allocated);

  // Where the host finds [at, at + size); null: not mapped, or not for this access.
  std::byte* find(CUdeviceptr at, std::size_t size, bool write) const;
  // Whether that device may so use it: memory of cuMemAlloc is every device's to copy.
  bool is_for(int device, CUdeviceptr at, std::size_t size, bool write) const;
  // False: `at` is in none.
  bool range_of(CUdeviceptr at, CUdeviceptr& begin, std::size_t& size) const;

  bool is_device(const void* at) const { return at >= device_ && at < device_ + kArena; }
  bool is_window(const void* at) const { return at >= window_ && at < window_ + kArena; }

 private:
  using Ranges = std::map<CUdeviceptr, Range>;
  Memory();
  std::byte* in_window(CUdeviceptr at) const { return window_ + (at - reinterpret_cast<CUdeviceptr>(device_)); }
  bool is_reserved(CUdeviceptr begin, CUdeviceptr end) const MILLRACE_REQUIRES(mutex_);
  Ranges::const_iterator around(CUdeviceptr at) const MILLRACE_REQUIRES(mutex_);

  static const std::size_t kArena;
  std::byte *const device_, *const window_;
  mutable Mutex mutex_;
  std::size_t next_ MILLRACE_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, std::size_t> reserved_ MILLRACE_GUARDED_BY(mutex_);
  Ranges ranges_ MILLRACE_GUARDED_BY(mutex_);
};

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kGranularity = std::size_t{2} << 20;  // of memory that is shared by descriptor

constexpr std::size_t rounded_up(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

}  // namespace millrace::sim
