// Memory between two pages that may not be touched: what is one byte outside it ends the process.
// Thread-bound(its owner).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>

namespace millrace {

class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes) : size_((bytes + page()) / page() * page()) {
    void* const all = mmap(nullptr, size_ + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("mmap");
    memory_ = static_cast<std::byte*>(all) + page();
    if (mprotect(memory_, size_, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("mprotect");
  }
  ~GuardedBytes() { munmap(memory_ - page(), size_ + 2 * page()); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  // REQUIRES: at most as many bytes as there are.
  std::span<std::byte> last(std::size_t bytes) { return {memory_ + size_ - bytes, bytes}; }
  std::span<std::byte> first(std::size_t bytes) { return {memory_, bytes}; }

  std::span<const std::byte> at_end(std::span<const std::byte> bytes) { return put(last(bytes.size()), bytes); }
  std::span<const std::byte> at_begin(std::span<const std::byte> bytes) { return put(first(bytes.size()), bytes); }

 private:
  static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
  static std::span<const std::byte> put(std::span<std::byte> at, std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(at.data(), bytes.data(), bytes.size());
    return at;
  }

  std::byte* memory_ = nullptr;
  std::size_t size_;
};

}  // namespace millrace
