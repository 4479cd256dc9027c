#include "tests/support/cuda_driver/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "proto/base/sanitized.h"
#include "tests/support/cuda_driver/control.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

// Sealed so that no importer can take the pages away under the others.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::byte* reserve_addresses(std::size_t size) {
  void* const at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) return static_cast<std::byte*>(at);
  std::fprintf(stderr, "simulated CUDA: no room for %zu GiB of addresses\n", size >> 30);
  std::abort();
}

int protection(int access) {
  if (access == cuda::CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return PROT_READ | PROT_WRITE;
  return access == cuda::CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

void scramble(int file, std::size_t size) {
  void* const at = mmap(nullptr, size, PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::abort();
  std::memset(at, 0xC7, size);
  munmap(at, size);
}

// Pages around a range.
CUdeviceptr first_page(CUdeviceptr at) {
  return at / kPage * kPage;
}
std::size_t page_bytes(CUdeviceptr at, std::size_t size) {
  return rounded_up(at + size, kPage) - first_page(at);
}

}  // namespace

bool Physical::make_file() {
  file_ = UniqueFd(memfd_create("simulated device memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) return false;
  if (fcntl(file_.get(), F_ADD_SEALS, kSeals) != 0) return false;
  if (settings().scramble) scramble(file_.get(), size_);
  return true;
}

std::shared_ptr<Physical> Physical::create(int device, std::size_t size, bool shareable) {
  if (!Control::get().charge(device, size)) return nullptr;
  std::shared_ptr<Physical> made(new Physical(device, size));
  made->charged_ = true;
  made->shareable_ = shareable;
  return made->make_file() ? made : nullptr;
}

std::shared_ptr<Physical> Physical::adopt(UniqueFd file, int device) {
  struct stat status {};
  if (!file || fcntl(file.get(), F_GET_SEALS) != kSeals || fstat(file.get(), &status) != 0) return nullptr;
  std::shared_ptr<Physical> adopted(new Physical(device, static_cast<std::size_t>(status.st_size)));
  adopted->file_ = std::move(file);
  return adopted;
}

Physical::~Physical() {
  if (charged_) Control::get().release(device_, size_);
}

// Sanitizers keep account of all addresses that are mapped.
const std::size_t Memory::kArena = std::size_t{kSanitized ? 32U : 256U} << 30;

Memory& Memory::get() {
  static auto* const memory = new Memory;  // streams may still work at the process's end
  return *memory;
}

Memory::Memory() : device_(reserve_addresses(kArena)), window_(reserve_addresses(kArena)), next_(kGranularity) {}

CUdeviceptr Memory::reserve(std::size_t size) {
  MutexLock lock(mutex_);
  const std::size_t begin = next_;
  if (size > kArena - begin || kArena - begin - size < 2 * kGranularity) return 0;
  next_ = begin + rounded_up(size, kGranularity) + kGranularity;  // a gap that nobody maps
  const CUdeviceptr at = reinterpret_cast<CUdeviceptr>(device_) + begin;
  reserved_[at] = size;
  return at;
}

bool Memory::is_reserved(CUdeviceptr begin, CUdeviceptr end) const {
  auto found = reserved_.upper_bound(begin);
  if (found == reserved_.begin()) return false;
  --found;
  return end <= found->first + found->second;
}

Memory::Ranges::const_iterator Memory::around(CUdeviceptr at) const {
  auto found = ranges_.upper_bound(at);
  if (found == ranges_.begin()) return ranges_.end();
  --found;
  return at < found->first + found->second.size ? found : ranges_.end();
}

bool Memory::unreserve(CUdeviceptr at, std::size_t size) {
  MutexLock lock(mutex_);
  const auto found = reserved_.find(at);
  if (found == reserved_.end() || found->second != size) return false;
  const auto mapped = ranges_.lower_bound(at);
  if (mapped != ranges_.end() && mapped->first < at + size) return false;
  reserved_.erase(found);
  return true;
}

bool Memory::map(CUdeviceptr at, Range range) {
  MutexLock lock(mutex_);
  const CUdeviceptr end = at + range.size;
  if (!is_reserved(first_page(at), end)) return false;
  const auto next = ranges_.lower_bound(at);
  if (around(at) != ranges_.end() || (next != ranges_.end() && next->first < end)) return false;
  if (mmap(in_window(first_page(at)), page_bytes(at, range.size), protection(range.access), MAP_SHARED | MAP_FIXED,
           range.physical->file(), 0) == MAP_FAILED)
    return false;
  ranges_[at] = std::move(range);
  return true;
}

bool Memory::set_access(CUdeviceptr at, std::size_t size, int device, int access) {
  MutexLock lock(mutex_);
  const auto found = ranges_.find(at);
  if (found == ranges_.end() || found->second.size != size || found->second.allocated) return false;
  Range& range = found->second;
  range.by_device[device] = access;
  range.access = cuda::CU_MEM_ACCESS_FLAGS_PROT_NONE;
  for (const auto& [whose, its] : range.by_device) range.access = std::max(range.access, its);
  return mprotect(in_window(at), size, protection(range.access)) == 0;
}

bool Memory::unmap(CUdeviceptr at, bool allocated) {
  MutexLock lock(mutex_);
  const auto found = ranges_.find(at);
  if (found == ranges_.end() || found->second.allocated != allocated) return false;
  if (mmap(in_window(first_page(at)), page_bytes(at, found->second.size), PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    std::abort();
  ranges_.erase(found);
  return true;
}

std::byte* Memory::find(CUdeviceptr at, std::size_t size, bool write) const {
  MutexLock lock(mutex_);
  const auto found = around(at);
  if (found == ranges_.end()) return nullptr;
  const Range& range = found->second;
  if (size > range.size - (at - found->first) || range.access == cuda::CU_MEM_ACCESS_FLAGS_PROT_NONE) return nullptr;
  if (write && range.access != cuda::CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return nullptr;
  return in_window(at);
}

bool Memory::is_for(int device, CUdeviceptr at, std::size_t size, bool write) const {
  if (find(at, size, write) == nullptr) return false;
  MutexLock lock(mutex_);
  const auto found = around(at);
  if (found == ranges_.end()) return false;
  if (found->second.allocated) return true;
  const auto its = found->second.by_device.find(device);
  const int least = write ? cuda::CU_MEM_ACCESS_FLAGS_PROT_READWRITE : cuda::CU_MEM_ACCESS_FLAGS_PROT_READ;
  return its != found->second.by_device.end() && its->second >= least;
}

bool Memory::range_of(CUdeviceptr at, CUdeviceptr& begin, std::size_t& size) const {
  MutexLock lock(mutex_);
  const auto found = around(at);
  if (found == ranges_.end()) return false;
  begin = found->first;
  size = found->second.size;
  return true;
}

}  // namespace millrace::sim
