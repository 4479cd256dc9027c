// A scan whose places are known, from a seek index or after restart markers: a thread a segment, each sure of its
// beginning. Tokens go to pieces of the image's range that threads take as they go.
#pragma once

#include <cstdint>

#include "kernels/cuda/tokenise/predictors.h"
#include "kernels/cuda/tokenise/window_output.h"

namespace millrace::kernels::cuda {

// Where tokens go.
struct TokenRange {
  Token* tokens;

  MILLRACE_HD void put_four(int at, std::uint64_t four) { store_aligned(tokens + at, four); }
  MILLRACE_HD void put(int at, Token token) { tokens[at] = token; }
};

// The sink of a segment's symbols.
template <class Block>
class SegmentSink {
 public:
  // `taken`: tokens of the image's range that are taken.
  MILLRACE_KERNEL SegmentSink(const ImageOutput& out, const ScanTables& scan, const Segment& segment,
                              std::uint32_t* taken)
      : out_(out), scan_(scan), taken_(taken), block_(segment.first_mcu * scan.blocks_in_mcu) {
    end_ = block_ + segment.mcus * scan.blocks_in_mcu;
    if (segment.checked != kEndExact && end_ > out.end_wanted) end_ = out.end_wanted;
    predictors_ = {static_cast<std::uint32_t>(segment.predictors[0]), static_cast<std::uint32_t>(segment.predictors[1]),
                   static_cast<std::uint32_t>(segment.predictors[2])};
  }

  MILLRACE_KERNEL bool is_over(const BitReader&, const Place&) const { return block_ >= end_ || failed_; }
  MILLRACE_KERNEL void begin_block(int difference) {
    level_ = predictors_.add(scan_.of_block[block_ % scan_.blocks_in_mcu].component, difference);
    failed_ |= is_beyond(level_);
    keeps_ = out_.wants(block_) && make_room();
    first_ = at_;
  }
  MILLRACE_KERNEL void add_token(Token token) {
    if (keeps_) packer_.add(range_, at_++, token);
  }
  MILLRACE_KERNEL void end_block() {
    if (keeps_) {
      out_.blocks[block_ - out_.first_wanted] = {piece_ + static_cast<std::uint32_t>(first_),
                                                 static_cast<std::int16_t>(level_),
                                                 static_cast<std::uint16_t>(at_ - first_)};
    }
    ++block_;
  }
  MILLRACE_KERNEL void note_bad(const Place&) { failed_ = true; }

  // False: not here.
  MILLRACE_KERNEL bool finish() {
    packer_.flush(range_, at_);
    return !failed_ && block_ >= end_;
  }
  // All of the segment's blocks were asked for.
  MILLRACE_KERNEL bool is_whole(const Segment& segment) const {
    return end_ == (segment.first_mcu + segment.mcus) * scan_.blocks_in_mcu;
  }
  MILLRACE_KERNEL bool has_predictors(const std::int16_t (&expected)[kMostComponents], int components) const {
    const auto same = [](std::uint32_t a, std::int16_t b) { return static_cast<std::int16_t>(a) == b; };
    return same(predictors_.first, expected[0]) &&
           (components == 1 || (same(predictors_.second, expected[1]) && same(predictors_.third, expected[2])));
  }

 private:
  // For a block's tokens. False: the image's range is full.
  MILLRACE_KERNEL bool make_room() {
    if (at_ + kCoefficients <= static_cast<int>(kTokenPiece)) return !failed_;
    packer_.flush(range_, at_);
    const std::uint32_t piece = Block::atomic_add(taken_, kTokenPiece);
    if (piece > out_.token_capacity || out_.token_capacity - piece < kTokenPiece) {
      failed_ = true;
      return false;
    }
    piece_ = piece;
    range_.tokens = out_.tokens + piece;
    at_ = 0;
    return !failed_;
  }

  ImageOutput out_;
  const ScanTables& scan_;
  std::uint32_t* taken_;
  std::uint32_t block_, end_;  // counted from the image's first
  Predictors predictors_;
  std::uint32_t level_ = 0;
  std::uint32_t piece_ = 0;
  int at_ = static_cast<int>(kTokenPiece), first_ = 0;  // in the piece; at its end: there is none
  bool keeps_ = false, failed_ = false;
  TokenRange range_{};  // the piece
  TokenPacker<TokenRange> packer_;
};

// Whether the reader stands where the segment has to end. `lead`: offset of the scan's first byte.
MILLRACE_HD inline bool ends_well(const Segment& segment, std::uint32_t lead, BitReader& reader) {
  if (segment.checked == kEndExact) return reader.position() == std::uint64_t{lead} * 8 + segment.end_bit;
  if (segment.checked != kEndPadded) return true;
  reader.refill();
  return reader.has_ended() && reader.available() < 8;
}

// False: not here.
template <class Block>
MILLRACE_KERNEL bool decode_segment(const ScanTables& tables, ScanBytes scan, const Segment& segment,
                                    const ImageOutput& out, int components, std::uint32_t* taken) {
  const std::uint32_t first = scan.first, begin = first + segment.first_bit / 8;
  if (begin >= scan.end) return false;
  if (segment.checked == kEndPadded) {
    if (segment.end_bit / 8 > scan.end - first) return false;
    scan.end = first + segment.end_bit / 8;
    if (begin >= scan.end) return false;
  }
  BitReader reader(scan, begin);
  reader.refill();
  if (!reader.take(static_cast<int>(segment.first_bit % 8))) return false;
  SegmentSink<Block> sink(out, tables, segment, taken);
  Place place;
  decode_symbols(tables, reader, place, sink);
  if (!sink.finish()) return false;
  if (sink.is_whole(segment) && !ends_well(segment, first, reader)) return false;
  return segment.checked != kEndExact || sink.has_predictors(segment.end_predictors, components);
}

// All of an image's. False: not here.
template <class Block>
MILLRACE_KERNEL bool decode_segments(Block& block, const ScanBytes& scan, const ImageJob& job, const Segment* segments,
                                     const ImageOutput& out) {
  auto& shared = block.template shared<TokeniseShared>();
  auto failed = block.template per_thread<bool>();
  const std::uint64_t mcus = std::uint64_t{job.mcu_columns} * job.mcu_rows;
  block.each([&](int thread) {
    if (thread == 0) shared.tokens_taken = 0;
  });
  block.each([&](int thread) {
    failed[thread] = false;
    for (auto i = static_cast<std::uint32_t>(thread); i < job.segments && !failed[thread];
         i += static_cast<std::uint32_t>(block.threads())) {
      const Segment& segment = segments[i];
      failed[thread] = std::uint64_t{segment.first_mcu} + segment.mcus > mcus ||
                       !decode_segment<Block>(shared.scan, scan, segment, out, job.components, &shared.tokens_taken);
    }
  });
  return !block.any(failed);
}

}  // namespace millrace::kernels::cuda
