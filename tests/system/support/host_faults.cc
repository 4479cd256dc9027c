// Stands in front of the C library for a daemon that is linked with it: reading files and the time of day are as
// host_faults.h's page says. Without that page they are what they are. Thread-safe.
#include "tests/system/support/host_faults.h"

#include <dlfcn.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace millrace {
namespace {

// Null: no faults.
HostFaultPage* page() {
  static HostFaultPage* const mapped = [] {
    const char* const path = std::getenv(kHostFaultsVariable);
    const UniqueFd file(path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC));
    if (!file) return static_cast<HostFaultPage*>(nullptr);
    void* const at = ::mmap(nullptr, sizeof(HostFaultPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    return at == MAP_FAILED ? nullptr : static_cast<HostFaultPage*>(at);
  }();
  return mapped;
}

bool is_of(int fd, const HostFaultPage::Pattern& part) {
  std::array<char, 32> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size() - 1);
  return length > 0 && std::strstr(path.data(), part.data()) != nullptr;
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace millrace

extern "C" ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  using namespace millrace;
  static const auto next = real<ssize_t (*)(int, void*, size_t, off_t)>("pread");
  if (HostFaultPage* const faults = page()) {
    if (faults->failing.load(std::memory_order_acquire) != 0 && is_of(fd, faults->fails)) {
      faults->reads_failed.fetch_add(1);
      errno = EIO;
      return -1;
    }
    const std::uint32_t slow = faults->slow_milliseconds.load(std::memory_order_acquire);
    if (slow > 0 && is_of(fd, faults->slow)) std::this_thread::sleep_for(std::chrono::milliseconds(slow));
    while (faults->hanging.load(std::memory_order_acquire) != 0 && is_of(fd, faults->hangs))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return next(fd, buffer, size, offset);
}

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using namespace millrace;
  static const auto next = real<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int status = next(clock, now);
  if (clock == CLOCK_REALTIME && status == 0) {
    if (HostFaultPage* const faults = page()) now->tv_sec += faults->clock_seconds.load();
  }
  return status;
}
