// Where in a window the streams of symbols run: every thread decodes its regions as if an MCU began there, which soon
// comes right by itself, for Huffman codes synchronise (Weissenberger and Schmidt, arXiv 2111.09219). Then, round after
// round, each thread whose predecessor left in another state than it had begun with begins again in that state. Since
// the first thread begins right, all are when nobody has to begin again; round r makes thread r right at the latest.
#pragma once

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/tokenise/regions.h"

namespace millrace::kernels::cuda {

inline constexpr int kNoEnd = 0x7fffffff;

struct TokeniseShared {
  ScanTables scan;
  Regions regions;
  State left[kMostTokeniseThreads];     // by each thread, after its last region
  std::uint16_t from[kMostRegions];     // first token of a region that is kept
  std::uint16_t count[kMostRegions];    // how many of them
  std::uint32_t kept_at[kMostRegions];  // where it goes: from the thread's first, in the end from the image's
  std::uint32_t tokens_taken;           // of the image's range, by segments
  std::uint32_t image;
};

// A window of a scan's data. `live` threads have data to look at.
struct ScanWindow {
  ScanBytes scan;
  std::uint32_t begin;  // offset of its first byte, a multiple of region_bytes
  State entered;
  TokeniseShape shape;
  unsigned char* scratch;

  MILLRACE_HD RegionRun run_of(int thread) const {
    const auto first = static_cast<std::uint32_t>(thread) * shape.regions;
    return {first, shape.regions, begin + first * shape.region_bytes, shape.region_bytes, scratch};
  }
};

struct Synchronised {
  bool in_time;
  int live;      // threads
  bool is_last;  // the data ends here
  std::uint32_t decoded, rounds;
};

// Every thread from a guess, the first from the truth. Where the data ends, as an offset, or kNoEnd.
template <class Block>
MILLRACE_KERNEL int decode_guesses(Block& block, const ScanWindow& window,
                                   typename Block::template PerThread<int>& decoded) {
  auto& shared = block.template shared<TokeniseShared>();
  auto end = block.template per_thread<int>();
  block.each([&](int thread) {
    const RegionRun run = window.run_of(thread);
    end[thread] = kNoEnd;
    decoded[thread] = 0;
    const State guess = thread == 0 ? window.entered : State{0};
    for (std::uint32_t i = 0; i < run.count; ++i)
      clear_region(shared.regions, run.first + i, i == 0 ? guess : kNeverIn);
    if (run.begin >= window.scan.end) return;
    const RegionsDecoded result = decode_regions(shared.scan, window.scan, run, guess, shared.regions);
    shared.left[thread] = result.left;
    decoded[thread] = static_cast<int>(result.count);
    if (result.end < window.scan.end) end[thread] = static_cast<int>(result.end);
  });
  return block.min_of(end);
}

// One round: whether anyone had to begin again.
template <class Block>
MILLRACE_KERNEL bool decode_again(Block& block, const ScanWindow& window, int live,
                                  typename Block::template PerThread<int>& decoded) {
  auto& shared = block.template shared<TokeniseShared>();
  auto state = block.template per_thread<State>();
  auto wrong = block.template per_thread<bool>();
  block.each([&](int thread) {
    wrong[thread] = false;
    if (thread == 0 || thread >= live) return;
    state[thread] = shared.left[thread - 1];
    wrong[thread] = state[thread] != shared.regions.entered[window.run_of(thread).first];
  });
  if (!block.any(wrong)) return false;
  block.each([&](int thread) {
    if (!wrong[thread]) return;
    const RegionsDecoded result =
        decode_regions(shared.scan, window.scan, window.run_of(thread), state[thread], shared.regions);
    if (!result.met) shared.left[thread] = result.left;
    decoded[thread] += static_cast<int>(result.count);
  });
  return true;
}

// Regions of threads that look at nothing but what comes after the data's end.
template <class Block>
MILLRACE_KERNEL void clear_behind(Block& block, const ScanWindow& window, int live) {
  auto& shared = block.template shared<TokeniseShared>();
  block.each([&](int thread) {
    if (thread < live) return;
    const RegionRun run = window.run_of(thread);
    for (std::uint32_t i = 0; i < run.count; ++i) clear_region(shared.regions, run.first + i, kEnded);
  });
}

// Threads that begin before `end`, or at it: at a marker the first symbol that lacks bits is noted.
template <class Block>
MILLRACE_KERNEL int live_threads(const Block& block, const ScanWindow& window, std::uint32_t end) {
  const std::uint32_t bytes = window.shape.regions * window.shape.region_bytes;
  const std::uint32_t last = end < window.scan.end ? end : window.scan.end - 1;
  const std::uint32_t live = (last - window.begin) / bytes + 1;
  return live < static_cast<std::uint32_t>(block.threads()) ? static_cast<int>(live) : block.threads();
}

// REQUIRES: window.begin < window.scan.end.
template <class Block>
MILLRACE_KERNEL Synchronised synchronise(Block& block, const ScanWindow& window) {
  auto decoded = block.template per_thread<int>();
  const int end = decode_guesses(block, window, decoded);
  const std::uint32_t window_end =
      window.begin + static_cast<std::uint32_t>(block.threads()) * window.shape.regions * window.shape.region_bytes;
  Synchronised result{true, live_threads(block, window, static_cast<std::uint32_t>(end)), false, 0, 0};
  result.is_last = window_end >= window.scan.end || static_cast<std::uint32_t>(end) < window_end;
  clear_behind(block, window, result.live);
  while (result.in_time && decode_again(block, window, result.live, decoded))
    result.in_time = ++result.rounds <= window.shape.most_rounds;
  result.decoded = static_cast<std::uint32_t>(block.exclusive_sum(decoded));
  return result;
}

}  // namespace millrace::kernels::cuda
