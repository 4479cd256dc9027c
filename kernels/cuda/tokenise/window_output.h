// What a window's regions gave, put together: scans of how many blocks start in them, of the DC differences and of the
// tokens that are kept say where each goes; tokens are moved by warps, so that neighbouring lanes write neighbours.
#pragma once

#include <cstdint>

#include "kernels/cuda/tokenise/predictors.h"
#include "kernels/cuda/tokenise/windows.h"

namespace millrace::kernels::cuda {

// The image's blocks and tokens so far. The same in all threads.
struct Progress {
  std::uint32_t started = 0;                    // blocks, wanted or not
  std::uint32_t kept = 0;                       // tokens of wanted blocks
  std::uint32_t finished = 0;                   // wanted blocks whose entries are complete
  std::uint32_t predictors[kMostComponents]{};  // modulo 2^32
};

// Where an image's results go. Blocks are counted from the image's first.
struct ImageOutput {
  Token* tokens;
  std::uint32_t token_capacity;
  BlockEntry* blocks;  // of the first wanted one
  std::uint32_t first_wanted, end_wanted;

  MILLRACE_HD bool wants(std::uint32_t block) const { return block >= first_wanted && block < end_wanted; }
  // Wanted ones among the first `started`.
  MILLRACE_HD std::uint32_t wanted_of(std::uint32_t started) const {
    const std::uint32_t end = started < end_wanted ? started : end_wanted;
    return end > first_wanted ? end - first_wanted : 0;
  }
};

// The starts of a thread's regions, in order: f(region, number of the block, start).
template <class Function>
MILLRACE_HD inline void for_each_start(const Regions& regions, const RegionRun& run, std::uint32_t block, Function f) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Slot slot(run.scratch, run.first + i, run.region_bytes);
    const int starts = regions.starts[run.first + i];
    for (int k = 0; k < starts; ++k) f(run.first + i, block++, slot.start(k));
  }
}

// Tokens of a region that belong to wanted blocks; `block`: the first that starts there.
struct Kept {
  std::uint32_t from, to;
};
MILLRACE_HD inline Kept kept_of(const Regions& regions, const Slot& slot, std::uint32_t region, std::uint32_t block,
                                const ImageOutput& out) {
  const std::uint32_t all = regions.tokens[region], starts = regions.starts[region];
  // Tokens before the block `limit`.
  const auto before = [&](std::uint32_t limit) -> std::uint32_t {
    if (limit < block) return 0;
    return limit - block < starts ? slot.start(static_cast<int>(limit - block)).tokens : all;
  };
  return {before(out.first_wanted), before(out.end_wanted)};
}

// Whether something among the wanted blocks was bad; where each region's tokens go. `block`: the first that starts in a
// thread's regions; `kept`: becomes the number of its tokens that are kept.
template <class Block>
MILLRACE_KERNEL bool place_tokens(Block& block, const ScanWindow& window, const ImageOutput& out,
                                  const typename Block::template PerThread<int>& first_block,
                                  typename Block::template PerThread<int>& kept) {
  auto& shared = block.template shared<TokeniseShared>();
  auto bad = block.template per_thread<bool>();
  block.each([&](int thread) {
    const RegionRun run = window.run_of(thread);
    auto at = static_cast<std::uint32_t>(first_block[thread]);
    bad[thread] = false;
    kept[thread] = 0;
    for (std::uint32_t region = run.first; region < run.first + run.count; ++region) {
      const int first_bad = shared.regions.bad[region];
      if (first_bad != kNothingBad && at + static_cast<std::uint32_t>(first_bad) < out.end_wanted) bad[thread] = true;
      const Slot slot(run.scratch, region, run.region_bytes);
      const Kept range = kept_of(shared.regions, slot, region, at, out);
      shared.from[region] = static_cast<std::uint16_t>(range.from);
      shared.kept_at[region] = static_cast<std::uint32_t>(kept[thread]);
      kept[thread] += static_cast<int>(range.to - range.from);
      shared.count[region] = static_cast<std::uint16_t>(range.to - range.from);
      at += shared.regions.starts[region];
    }
  });
  return block.any(bad);
}

// A thread's differences, added up by component, and those before it.
template <class Block>
MILLRACE_KERNEL void sum_differences(Block& block, const ScanWindow& window,
                                     const typename Block::template PerThread<int>& first_block, Progress& progress,
                                     typename Block::template PerThread<int> (&before)[kMostComponents]) {
  auto& shared = block.template shared<TokeniseShared>();
  block.each([&](int thread) {
    unsigned sums[kMostComponents] = {};
    const auto first = static_cast<std::uint32_t>(first_block[thread]);
    for_each_start(shared.regions, window.run_of(thread), first,
                   [&](std::uint32_t, std::uint32_t at, BlockStart start) {
                     const int component = shared.scan.of_block[at % shared.scan.blocks_in_mcu].component;
                     for (int i = 0; i < kMostComponents; ++i)
                       sums[i] += i == component ? static_cast<unsigned>(start.difference) : 0U;
                   });
    for (int i = 0; i < kMostComponents; ++i) before[i][thread] = static_cast<int>(sums[i]);
  });
  for (int i = 0; i < kMostComponents; ++i) {
    const auto total = static_cast<unsigned>(block.exclusive_sum(before[i]));
    const unsigned known = progress.predictors[i];
    block.each(
        [&](int thread) { before[i][thread] = static_cast<int>(static_cast<unsigned>(before[i][thread]) + known); });
    progress.predictors[i] += total;
  }
}

// The entries of wanted blocks, without how many tokens they have. Whether a level up to the last of them is_beyond().
template <class Block>
MILLRACE_KERNEL bool write_entries(Block& block, const ScanWindow& window, const ImageOutput& out, std::uint32_t kept,
                                   const typename Block::template PerThread<int>& first_block,
                                   const typename Block::template PerThread<int>& kept_before,
                                   const typename Block::template PerThread<int> (&before)[kMostComponents]) {
  auto& shared = block.template shared<TokeniseShared>();
  auto beyond = block.template per_thread<bool>();
  block.each([&](int thread) {
    unsigned predictors[kMostComponents];
    bool any_beyond = false;
    for (int i = 0; i < kMostComponents; ++i) predictors[i] = static_cast<unsigned>(before[i][thread]);
    const std::uint32_t base = kept + static_cast<std::uint32_t>(kept_before[thread]);
    const auto first = static_cast<std::uint32_t>(first_block[thread]);
    for_each_start(shared.regions, window.run_of(thread), first,
                   [&](std::uint32_t region, std::uint32_t at, BlockStart start) {
                     const int component = shared.scan.of_block[at % shared.scan.blocks_in_mcu].component;
                     unsigned level = 0;
                     for (int i = 0; i < kMostComponents; ++i) {
                       predictors[i] += i == component ? static_cast<unsigned>(start.difference) : 0U;
                       level = i == component ? predictors[i] : level;
                     }
                     any_beyond |= at < out.end_wanted && is_beyond(level);
                     if (!out.wants(at)) return;
                     const std::uint32_t token = base + shared.kept_at[region] + start.tokens - shared.from[region];
                     out.blocks[at - out.first_wanted] = {token, static_cast<std::int16_t>(level), 0};
                   });
    const RegionRun run = window.run_of(thread);
    for (std::uint32_t region = run.first; region < run.first + run.count; ++region) shared.kept_at[region] += base;
    beyond[thread] = any_beyond;
  });
  return block.any(beyond);
}

// Each warp takes regions in turn.
template <class Block>
MILLRACE_KERNEL void move_tokens(Block& block, const ScanWindow& window, const ImageOutput& out, int live) {
  auto& shared = block.template shared<TokeniseShared>();
  const std::uint32_t regions = static_cast<std::uint32_t>(live) * window.shape.regions;
  block.each([&](int thread) {
    const auto warps = static_cast<std::uint32_t>(block.threads() / kWarp);
    for (auto region = static_cast<std::uint32_t>(thread / kWarp); region < regions; region += warps) {
      const Slot slot(window.scratch, region, window.shape.region_bytes);
      const std::uint32_t count = shared.count[region], from = shared.from[region];
      Token* const to = out.tokens + shared.kept_at[region];
      for (auto i = static_cast<std::uint32_t>(thread % kWarp); i < count; i += kWarp)
        to[i] = slot.token(static_cast<int>(from + i));
    }
  });
}

// How many tokens blocks have whose successor's entry is there; with `all`, the last one's too.
template <class Block>
MILLRACE_KERNEL void count_tokens(Block& block, const ImageOutput& out, Progress& progress, bool all) {
  const std::uint32_t known = out.wanted_of(progress.started), first = progress.finished;
  const std::uint32_t end = all || known == 0 ? known : known - 1;
  block.each([&](int thread) {
    for (std::uint32_t i = first + static_cast<std::uint32_t>(thread); i < end;
         i += static_cast<std::uint32_t>(block.threads())) {
      const std::uint32_t next = i + 1 < known ? out.blocks[i + 1].first_token : progress.kept;
      out.blocks[i].tokens = static_cast<std::uint16_t>(next - out.blocks[i].first_token);
    }
  });
  progress.finished = end;
}

// A synchronised window's results. False: not here.
template <class Block>
MILLRACE_KERNEL bool put_window(Block& block, const ScanWindow& window, int live, const ImageOutput& out,
                                Progress& progress) {
  auto& shared = block.template shared<TokeniseShared>();
  auto first_block = block.template per_thread<int>();
  auto kept = block.template per_thread<int>();
  typename Block::template PerThread<int> before[kMostComponents] = {
      block.template per_thread<int>(), block.template per_thread<int>(), block.template per_thread<int>()};
  block.each([&](int thread) {
    const RegionRun run = window.run_of(thread);
    first_block[thread] = 0;
    for (std::uint32_t i = 0; i < run.count; ++i) first_block[thread] += shared.regions.starts[run.first + i];
  });
  const auto starts = static_cast<std::uint32_t>(block.exclusive_sum(first_block));
  const std::uint32_t started = progress.started;
  block.each([&](int thread) { first_block[thread] += static_cast<int>(started); });
  if (place_tokens(block, window, out, first_block, kept)) return false;
  const auto kept_here = static_cast<std::uint32_t>(block.exclusive_sum(kept));
  if (kept_here > out.token_capacity - progress.kept) return false;
  sum_differences(block, window, first_block, progress, before);
  if (write_entries(block, window, out, progress.kept, first_block, kept, before)) return false;
  move_tokens(block, window, out, live);
  progress.started += starts;
  progress.kept += kept_here;
  return true;
}

}  // namespace millrace::kernels::cuda
