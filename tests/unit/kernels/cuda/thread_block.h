// A third executor of CUDA kernels, beside device_block.h and host_block.h: each thread of a block is a thread of this
// process, and each phase ends at a barrier. It shows what the host executor's turns hide, because a kernel's code
// outside each() runs there once, and here once for each thread:
//
// - ThreadSanitizer names memory that one thread reads between phases and another one writes before the next barrier.
// - Threads that part ways are found: all threads of a block have to come to the same barrier, or all to the kernel's
//   end. run_on_threads() then throws std::runtime_error, which says where they are; no thread waits on.
// - So is a thread that looks at another one's per-thread value, which is in a register on a GPU.
//
// Shared memory and per-thread values begin as random bytes.
//
//   run_on_threads({.blocks = 3, .threads = 32, .side_by_side = 3}, [&](ThreadBlock& block) { tokenise(block, args); });
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/block.h"

namespace millrace {

// A call in a kernel's source; no file: the kernel's end.
struct KernelPlace {
  const char* file = nullptr;
  int line = 0;

  bool operator==(const KernelPlace& other) const;
  std::string text() const;
};

// What the threads of a block share. Thread-safe.
class ThreadTeam {
 public:
  // No thread of a block has a result any more.
  struct Broken {};

  ThreadTeam(int threads, std::uint32_t seed);

  int threads() const { return static_cast<int>(values_.size()); }

  // Returns when all threads are here. Throws Broken if one is elsewhere, now or before.
  void meet(const KernelPlace& place);
  // The first reason stays. Throws Broken.
  [[noreturn]] void fail(const std::string& reason);
  // Empty: nothing failed. REQUIRES: the threads have ended.
  const std::string& failure() const { return failure_; }

  // Shared memory as anything. REQUIRES: no thread uses it.
  void scramble();
  void* shared(std::size_t size);

  // Values of the collectives, a thread each: read between two meetings.
  std::int64_t& value(int thread) { return values_[static_cast<std::size_t>(thread)]; }

 private:
  static constexpr std::size_t kSharedBytes = std::size_t{64} << 10;  // no kernel has more
  struct alignas(64) SharedMemory {
    std::byte bytes[kSharedBytes];
  };

  const std::unique_ptr<SharedMemory> shared_;
  std::vector<std::int64_t> values_;
  std::uint32_t seed_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  KernelPlace place_;      // of this meeting
  int here_ = 0;           // threads
  unsigned meetings_ = 0;  // that are over
  std::string failure_;
};

// One thread's view of its block, as block.h describes it. Thread-bound(its thread).
class ThreadBlock {
 public:
  template <kernels::cuda::PlainValue T>
  class PerThread {
   public:
    explicit PerThread(ThreadBlock& block) : block_(block) {
      std::memset(&value_, block.next_pattern(), sizeof value_);
    }
    T& operator[](int thread) {
      block_.check_own(thread);
      return value_;
    }
    const T& operator[](int thread) const {
      block_.check_own(thread);
      return value_;
    }

   private:
    friend ThreadBlock;
    ThreadBlock& block_;
    T value_;
  };

  ThreadBlock(ThreadTeam& team, int index, int thread) : team_(team), index_(index), thread_(thread) {}

  int index() const { return index_; }
  int threads() const { return team_.threads(); }

  template <class Function>
  void each(Function function, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    function(thread_);
    team_.meet({file, line});
  }

  template <kernels::cuda::PlainValue T>
  T& shared() {
    return *static_cast<T*>(team_.shared(sizeof(T)));
  }
  template <kernels::cuda::PlainValue T>
  PerThread<T> per_thread() {
    return PerThread<T>(*this);
  }

  int exclusive_sum(PerThread<int>& own, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    const std::vector<std::int64_t> all = gather(own.value_, {file, line});
    own.value_ = static_cast<int>(std::accumulate(all.begin(), all.begin() + thread_, std::int64_t{0}));  // wraps
    return static_cast<int>(std::accumulate(all.begin(), all.end(), std::int64_t{0}));
  }
  int min_of(PerThread<int>& own, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return static_cast<int>(std::ranges::min(gather(own.value_, {file, line})));
  }
  bool any(PerThread<bool>& own, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return std::ranges::max(gather(own.value_ ? 1 : 0, {file, line})) != 0;
  }

  template <class T>
  static T atomic_add(T* at, T value) {
    return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
  }
  template <class T>
  static T load(const T* at) {
    return std::atomic_ref<T>(const_cast<T&>(*at)).load(std::memory_order_relaxed);
  }
  template <class T>
  static void store(T* at, T value) {
    std::atomic_ref<T>(*at).store(value, std::memory_order_relaxed);
  }

 private:
  int next_pattern() { return (thread_ * 37 + ++patterns_ * 11) & 0xff; }
  void check_own(int thread) const {
    if (thread != thread_) team_.fail("a thread looks at another one's value");
  }
  std::vector<std::int64_t> gather(std::int64_t own, const KernelPlace& place);

  ThreadTeam& team_;
  const int index_, thread_;
  int patterns_ = 0;
};

struct ThreadGrid {
  int blocks = 0;
  int threads = 0;  // a block: a multiple of kernels::cuda::kWarp
  int side_by_side = 1;
  std::uint32_t seed = 1;  // draws the order of blocks
};

// kernel(block) for every block of the grid, in a random order. Throws std::runtime_error where threads part ways.
void run_on_threads(const ThreadGrid& grid, const std::function<void(ThreadBlock&)>& kernel);

}  // namespace millrace
