// Tells which threads touch pages of memory: the first thread at one is written down and goes on, or waits until it is
// let go. One trap at a time.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "proto/base/bytes.h"

namespace millrace {

class TouchTrap {
 public:
  static constexpr std::size_t kPage = 4096;
  enum class Then : std::uint8_t { kGoesOn, kWaits };

  // The whole pages that lie in `bytes`; there is one at least.
  explicit TouchTrap(MutableByteView bytes, Then then = Then::kGoesOn) {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    begin_ = (begin + kPage - 1) / kPage * kPage;
    end_ = (begin + bytes.size()) / kPage * kPage;
    if (end_ <= begin_ || end_ - begin_ > kPage * touched_.size()) std::abort();
    active_ = this;
    holds_ = then == Then::kWaits;
    struct sigaction trap {};
    trap.sa_sigaction = on_touch;
    trap.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &trap, &before_);
    ::mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_NONE);
  }
  ~TouchTrap() {
    let_go();
    ::mprotect(reinterpret_cast<void*>(begin_), end_ - begin_, PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &before_, nullptr);
    active_ = nullptr;
  }
  TouchTrap(const TouchTrap&) = delete;
  TouchTrap& operator=(const TouchTrap&) = delete;

  // The threads that wait go on, and none waits from here on.
  void let_go() { holds_ = false; }

  static int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

  // The threads that were the first to touch a page.
  std::set<int> touched_by() const {
    std::set<int> threads;
    for (const std::atomic<int>& thread : touched_) {
      if (thread != 0) threads.insert(thread);
    }
    return threads;
  }

 private:
  static void on_touch(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    TouchTrap* const trap = active_;
    if (trap == nullptr || address < trap->begin_ || address >= trap->end_) std::abort();
    int untouched = 0;
    trap->touched_[(address - trap->begin_) / kPage].compare_exchange_strong(untouched, this_thread());
    constexpr timespec kMoment{0, 1'000'000};
    while (holds_) ::nanosleep(&kMoment, nullptr);
    ::mprotect(reinterpret_cast<void*>(address / kPage * kPage), kPage, PROT_READ | PROT_WRITE);
  }

  static inline std::atomic<TouchTrap*> active_{nullptr};
  static inline std::atomic<bool> holds_{false};
  std::uintptr_t begin_ = 0, end_ = 0;
  std::array<std::atomic<int>, 4096> touched_{};  // the first thread at each page
  struct sigaction before_ {};
};

}  // namespace millrace
