// How kernels here are written: as phases between barriers. A kernel is a function template over a *block*, and all
// that it does, it does in each(), which runs a function for every thread of the block and ends with a barrier:
//
//   template <class Block>
//   MILLRACE_HD void count_zeros(Block& block, CountArgs args) {
//     auto& shared = block.template shared<CountShared>();
//     auto mine = block.template per_thread<int>();            // lives across phases: a register, or an array on the
//     host block.each([&](int thread) { mine[thread] = ...; }); const int total = block.exclusive_sum(mine); //
//     collectives stand between phases
//   }
//
// On a GPU (device_block.h) each() runs its function once, for the calling thread, and synchronises. On a host
// (host_block.h) it loops over the threads, in an order that tests draw at random: so whatever depends on the order of
// threads within a phase shows, and every phase runs under sanitizers. Code outside each() must be the same for all
// threads, and must not touch memory that threads write.
//
// A block offers:
//   int index() const, threads() const      which block this is; how many threads it has
//   void each(f)                            f(thread) for thread in [0, threads()), then a barrier
//   T& shared<T>()                          the block's shared memory as T, the same T for the whole kernel; not
//   initialised PerThread<T> per_thread<T>()            operator[](thread); only the thread itself may look at its
//   entry int exclusive_sum(PerThread<int>&)      entries become the sums of those before them; returns the sum of all
//   bool any(PerThread<bool>&)              whether one is true
// and, as static functions: atomic_add(T*, T) -> the old value.
#pragma once
