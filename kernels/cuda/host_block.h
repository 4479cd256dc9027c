// A thread block that a host steps through, phase by phase, as block.h describes it: for tests, and for programs that
// want the kernels' results without a GPU. Thread-bound(its owner).
//
// What would go unseen on a GPU is made to show: threads take their turns in a random order, another one each phase;
// shared memory and per-thread values begin as random bytes, and each is memory of its own, so that AddressSanitizer
// sees a thread that leaves it.
//
//   run_grid({.blocks = images, .threads = 512, .seed = 1}, [&](HostBlock& block) { tokenise(block, args); });
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/block.h"

namespace millrace::kernels::cuda {

class HostBlock {
 public:
  template <PlainValue T>
  class PerThread {
   public:
    explicit PerThread(int threads) : values_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(threads))) {}
    T& operator[](int thread) { return values_[static_cast<std::size_t>(thread)]; }
    const T& operator[](int thread) const { return values_[static_cast<std::size_t>(thread)]; }

   private:
    friend HostBlock;
    std::unique_ptr<T[]> values_;
  };

  // REQUIRES: threads a multiple of kWarp.
  HostBlock(int index, int threads, std::uint32_t seed) : index_(index), order_(static_cast<std::size_t>(threads)) {
    random_.seed(seed * 2654435761U + static_cast<std::uint32_t>(index));
    std::iota(order_.begin(), order_.end(), 0);
  }

  int index() const { return index_; }
  int threads() const { return static_cast<int>(order_.size()); }

  template <class Function>
  void each(Function function) {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const int thread : order_) function(thread);
  }

  template <PlainValue T>
  T& shared() {
    if (!shared_) {
      const auto alignment = static_cast<std::align_val_t>(std::max(alignof(T), alignof(std::max_align_t)));
      shared_ = {static_cast<std::byte*>(::operator new(sizeof(T), alignment)), AlignedDelete{alignment}};
      shared_size_ = sizeof(T);
      scramble(shared_.get(), sizeof(T));
    }
    if (shared_size_ != sizeof(T)) std::abort();  // a kernel has one T
    return *std::launder(reinterpret_cast<T*>(shared_.get()));
  }

  template <PlainValue T>
  PerThread<T> per_thread() {
    PerThread<T> made(threads());
    scramble(made.values_.get(), order_.size() * sizeof(T));
    return made;
  }

  int exclusive_sum(PerThread<int>& values) {
    unsigned sum = 0;  // wraps as on a GPU
    for (int& value : entries(values)) sum += static_cast<unsigned>(std::exchange(value, static_cast<int>(sum)));
    return static_cast<int>(sum);
  }
  int min_of(PerThread<int>& values) { return std::ranges::min(entries(values)); }
  bool any(PerThread<bool>& values) {
    return std::ranges::any_of(entries(values), [](bool value) { return value; });
  }

  template <class T>
  static T atomic_add(T* at, T value) {
    const T old = *at;
    *at = old + value;
    return old;
  }
  template <class T>
  static T load(const T* at) {
    return *at;
  }
  template <class T>
  static void store(T* at, T value) {
    *at = value;
  }

 private:
  struct AlignedDelete {
    std::align_val_t alignment;
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };

  template <class T>
  std::span<T> entries(PerThread<T>& values) {
    return {values.values_.get(), order_.size()};
  }

  void scramble(void* memory, std::size_t size) {
    auto* const bytes = static_cast<std::byte*>(memory);
    const auto pattern = random_();
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(pattern >> (i % 4 * 8) ^ i);
  }

  int index_;
  std::vector<int> order_;
  std::minstd_rand random_;
  std::unique_ptr<std::byte, AlignedDelete> shared_{nullptr, AlignedDelete{}};
  std::size_t shared_size_ = 0;
};

struct Grid {
  int blocks = 0;
  int threads = 0;  // a block: a multiple of kWarp
  std::uint32_t seed = 0;
};

// kernel(block) for every block of the grid, in a random order.
template <class Kernel>
void run_grid(const Grid& grid, Kernel kernel) {
  std::vector<int> order(static_cast<std::size_t>(grid.blocks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::minstd_rand(grid.seed + 1));
  for (const int index : order) {
    HostBlock block(index, grid.threads, grid.seed);
    kernel(block);
  }
}

}  // namespace millrace::kernels::cuda
