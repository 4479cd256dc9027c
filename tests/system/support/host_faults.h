// What goes wrong at the host of a daemon under test: files whose reading fails, takes long or does not end, and a clock
// that jumps.
// The daemon is `millraced_on_a_bad_host` (host_faults.cc): millraced, with calls of the kernel that look here first.
//
//   HostFaults faults(folder / "faults");
//   Daemon daemon({.roots = {...}, .program = bad_host_program(), .env = {faults.env()}});
//   faults.reads_fail("broken");         until faults.reads_fail("")
//
// One page that both processes map. Writer: the test. Reader: the daemon's threads, at each call.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "proto/base/unique_fd.h"
#include "tests/support/host/process.h"

namespace millrace {

struct HostFaultPage {
  using Pattern = std::array<char, 256>;  // a part of the paths that are meant; empty: none is

  std::atomic<std::uint32_t> failing;  // reads of `fails` end with EIO. Published after the pattern
  Pattern fails;
  std::atomic<std::uint32_t> slow_milliseconds;  // each read of `slow` takes so long. Published after the pattern
  Pattern slow;
  std::atomic<std::uint32_t> hanging;  // reads of `hangs` do not come back until this is 0. Published after the pattern
  Pattern hangs;
  std::atomic<std::int64_t> clock_seconds;  // that the time of day is ahead
  std::atomic<std::uint64_t> reads_failed;  // written by the daemon
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr const char* kHostFaultsVariable = "MILLRACE_TEST_HOST_FAULTS";

class HostFaults {
 public:
  explicit HostFaults(std::string path) : path_(std::move(path)) {
    const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file || ::ftruncate(file.get(), sizeof(HostFaultPage)) != 0) throw std::runtime_error("no page for faults");
    void* const mapped = ::mmap(nullptr, sizeof(HostFaultPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapped == MAP_FAILED) throw std::runtime_error("no page for faults");
    page_ = static_cast<HostFaultPage*>(mapped);  // zeroes are a page without faults
  }
  ~HostFaults() { ::munmap(page_, sizeof(HostFaultPage)); }
  HostFaults(const HostFaults&) = delete;
  HostFaults& operator=(const HostFaults&) = delete;

  std::pair<std::string, std::string> env() const { return {kHostFaultsVariable, path_}; }

  // Files with `part` in their path; "": none.
  void reads_fail(std::string_view part) {
    page_->failing.store(0);
    write(page_->fails, part);
    page_->failing.store(part.empty() ? 0 : 1, std::memory_order_release);
  }
  void reads_take(std::uint32_t milliseconds, std::string_view part) {
    page_->slow_milliseconds.store(0);
    write(page_->slow, part);
    page_->slow_milliseconds.store(milliseconds, std::memory_order_release);
  }
  // Of files whose path has `part` in it, from now on; "" lets those come back that hang.
  void reads_hang(std::string_view part) {
    page_->hanging.store(0, std::memory_order_release);
    if (part.empty()) return;
    write(page_->hangs, part);
    page_->hanging.store(1, std::memory_order_release);
  }
  void clock_is_ahead(std::int64_t seconds) { page_->clock_seconds.store(seconds); }
  std::uint64_t reads_failed() const { return page_->reads_failed.load(); }

 private:
  static void write(HostFaultPage::Pattern& pattern, std::string_view part) {
    if (part.size() >= pattern.size()) throw std::runtime_error("too long a part of a path");
    pattern.fill('\0');
    std::memcpy(pattern.data(), part.data(), part.size());
  }

  const std::string path_;
  HostFaultPage* page_ = nullptr;
};

inline std::string bad_host_program() {
  return tests_folder() + "/millraced_on_a_bad_host";
}

}  // namespace millrace
