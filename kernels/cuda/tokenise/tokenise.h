// K1, tokenise: JPEG scans to tokens and block entries (batch.h), a thread block an image.
//
//   bytes ─▶ guess every thread's beginning ─▶ rounds until all are right ─▶ scans ─▶ entries, tokens ─▶ next window
//   bytes ─▶ segments, whose beginnings are known ─▶ entries, tokens
//
// Blocks of the wanted MCU rows are put out, in both ways equal to what libjpeg-turbo decodes without a warning;
// otherwise the image's Status says why not, and its entries mean nothing. With segments only their blocks are put out.
// Packed images are left alone (unpack.h). Thread blocks take images as they come, so a grid should be as large as the
// GPU can hold at once.
#pragma once

#include <cstdint>

#include "kernels/cuda/tokenise/segments.h"
#include "kernels/cuda/tokenise/window_output.h"

namespace millrace::kernels::cuda {

// Which of shared memory's tables a component uses: those of the first component that names the same.
MILLRACE_HD inline int slot_of_table(const ImageJob& job, int component, bool is_dc) {
  const auto table = [&](int i) { return is_dc ? job.component[i].dc_table : job.component[i].ac_table; };
  int slot = 0;
  while (table(slot) != table(component)) ++slot;
  return 2 * slot + (is_dc ? 0 : 1);
}

MILLRACE_HD inline void copy_part(DecodeTable& to, const DecodeTable& from, int thread, int threads) {
  constexpr int kWords = sizeof(DecodeTable) / sizeof(std::uint64_t);
  for (int i = thread; i < kWords; i += threads) {
    const std::size_t at = static_cast<std::size_t>(i) * sizeof(std::uint64_t);
    store_aligned(reinterpret_cast<unsigned char*>(&to) + at,
                  load_aligned<std::uint64_t>(reinterpret_cast<const unsigned char*>(&from) + at));
  }
}

// The image's tables into shared memory.
template <class Block>
MILLRACE_KERNEL void load_tables(Block& block, const ImageJob& job, const DecodeTable* tables) {
  auto& shared = block.template shared<TokeniseShared>();
  block.each([&](int thread) {
    for (int i = 0; i < job.components; ++i) {
      for (const bool is_dc : {true, false}) {
        const int slot = slot_of_table(job, i, is_dc);
        if (slot / 2 != i) continue;
        const DecodeTable& from = tables[is_dc ? job.component[i].dc_table : job.component[i].ac_table];
        copy_part(shared.scan.tables[slot], from, thread, block.threads());
      }
    }
    if (thread != 0) return;
    int at = 0;
    for (int i = 0; i < job.components; ++i) {
      for (int k = 0; k < job.component[i].h * job.component[i].v && at < kMostBlocksInMcu; ++k)
        shared.scan.of_block[at++] = {static_cast<std::uint8_t>(slot_of_table(job, i, true)),
                                      static_cast<std::uint8_t>(slot_of_table(job, i, false)),
                                      static_cast<std::uint8_t>(i)};
    }
    shared.scan.blocks_in_mcu = static_cast<std::uint8_t>(at);
  });
}

// ScanWindow by window, up to the last wanted block.
template <class Block>
MILLRACE_KERNEL Status decode_windows(Block& block, const ScanBytes& scan, const TokeniseArgs& args,
                                      const ImageOutput& out, TokeniseWork& work) {
  auto& shared = block.template shared<TokeniseShared>();
  const std::uint32_t bytes =
      static_cast<std::uint32_t>(block.threads()) * args.shape.regions * args.shape.region_bytes;
  unsigned char* const scratch =
      args.scratch + static_cast<std::uint64_t>(block.index()) * scratch_bytes(args.shape, block.threads());
  ScanWindow window{scan, 0, 0, args.shape, scratch};
  Progress progress;
  for (;;) {
    const Synchronised streams = synchronise(block, window);
    ++work.windows;
    work.rounds += streams.rounds;
    work.decoded += streams.decoded;
    work.regions += static_cast<std::uint32_t>(streams.live) * args.shape.regions;
    if (!streams.in_time) return Status::kNotInTime;
    window.entered = shared.left[streams.live - 1];  // written again after barriers only
    if (!put_window(block, window, streams.live, out, progress)) return Status::kNotHere;
    const bool between_blocks = place_of(window.entered).coefficient == 0;
    const bool complete = progress.started > out.end_wanted || (progress.started == out.end_wanted && between_blocks);
    count_tokens(block, out, progress, complete);
    if (complete) return Status::kDone;
    if (streams.is_last || (window.entered & kEnded) != 0) return Status::kNotHere;
    window.begin += bytes;
  }
}

// What the kernels provide for; the rest of what a job says is the planner's.
MILLRACE_HD inline bool is_provided_for(const ImageJob& job) {
  return job.byte_count > 0 && job.byte_count <= kMostScanBytes && job.blocks_in_mcu > 0 &&
         job.blocks_in_mcu <= kMostBlocksInMcu && job.first_mcu_row < job.end_mcu_row &&
         job.end_mcu_row <= job.mcu_rows && (job.segments > 0 || job.restart_interval == 0);
}

template <class Block>
MILLRACE_KERNEL Status tokenise_image(Block& block, const TokeniseArgs& args, const ImageJob& job, TokeniseWork& work) {
  if (!is_possible(args.shape, block.threads()) || !is_provided_for(job)) return Status::kNotHere;
  const auto lead = static_cast<std::uint32_t>(job.bytes % 16);
  const ScanBytes scan{args.bytes + (job.bytes - lead), lead, lead + job.byte_count};
  const std::uint32_t row = std::uint32_t{job.mcu_columns} * job.blocks_in_mcu;
  const ImageOutput out{args.tokens + job.first_token, job.token_capacity, args.blocks + job.first_block,
                        job.first_mcu_row * row, job.end_mcu_row * row};
  load_tables(block, job, args.tables);
  if (job.segments == 0) return decode_windows(block, scan, args, out, work);
  return decode_segments(block, scan, job, args.segments + job.first_segment, out) ? Status::kDone : Status::kNotHere;
}

// The next image that K1 has to decode; args.images or more: there is none. Packed images are passed over. For one thread
// of the block.
template <class Block>
MILLRACE_KERNEL std::uint32_t take_image(const TokeniseArgs& args) {
  for (;;) {
    const std::uint32_t image = Block::atomic_add(args.next_image, 1U);
    if (image >= args.images || args.jobs[image].byte_count != 0) return image;
  }
}

// The kernel. shared.image is read behind the barrier of the phase that writes it, and each image that is taken ends with
// another phase: so no thread takes the next image before all have read this one's number.
template <class Block>
MILLRACE_KERNEL void tokenise(Block& block, const TokeniseArgs& args) {
  auto& shared = block.template shared<TokeniseShared>();
  for (;;) {
    block.each([&](int thread) {
      if (thread == 0) shared.image = take_image<Block>(args);
    });
    const std::uint32_t image = shared.image;
    if (image >= args.images) return;
    TokeniseWork work{};
    const Status status = tokenise_image(block, args, args.jobs[image], work);
    block.each([&](int thread) {
      if (thread != 0) return;
      args.statuses[image] = status;
      if (args.work != nullptr) args.work[image] = work;
    });
  }
}

}  // namespace millrace::kernels::cuda
