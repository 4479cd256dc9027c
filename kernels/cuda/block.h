// How kernels here are written: as phases between barriers. A kernel is a function template over a *block*, and all
// that it does to memory, it does in each(), which runs a function for every thread and ends with a barrier:
//
//   template <class Block>
//   MILLRACE_KERNEL void count_zeros(Block& block, const CountArgs& args) {
//     auto& shared = block.template shared<CountShared>();
//     auto mine = block.template per_thread<int>();  // lives across phases
//     block.each([&](int thread) { mine[thread] = ...; });
//     const int total = block.exclusive_sum(mine);   // collectives stand between phases
//   }
//
// On a GPU (device_block.h) each() runs its function once, for the calling thread, and synchronises. On a host
// (host_block.h) it loops over the threads, in an order that tests draw at random: so whatever depends on the order of
// threads within a phase shows, and every phase runs under sanitizers. Code outside each() must be the same for all
// threads: it may read memory that no thread writes before the next barrier, and writes none. A loop that reads shared
// memory there has a phase behind the read in every round: a `continue` before it lets a fast thread write the next
// round's value while slow ones have not read this one's. README.md lists what each kernel shares. Tests run kernels with
// real threads as well (tests/unit/kernels/cuda/thread_block.h), since a host block runs this code once.
//
// A block offers:
//   int index(), threads()            which block of the grid this is; how many threads it has, a multiple of 32
//   void each(f)                      f(thread) for thread in [0, threads()), then a barrier
//   T& shared<T>()                    the block's shared memory as T, the same T for the whole kernel; not initialised
//   PerThread<T> per_thread<T>()      operator[](thread); only the thread itself may look at its entry; not initialised
//   int exclusive_sum(PerThread<int>& values)        each becomes the sum of those before it; returns the sum of all
//   int min_of(PerThread<int>& values)               the least of all
//   bool any(PerThread<bool>& values)                whether one is true
//   static T atomic_add(T* at, T value)              the old value; int, unsigned, or unsigned 64 bits wide
//   static T load(const T* at)                       of a word that threads of other blocks store meanwhile
//   static void store(T* at, T value)                such a word
// A collective begins where all threads are behind its values' last change, and ends with a barrier.
#pragma once

#include <type_traits>

#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

// What shared memory and registers hold: nothing is constructed or destroyed in them.
template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>;

inline constexpr int kWarp = 32;

}  // namespace millrace::kernels::cuda
