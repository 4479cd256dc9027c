#include "hls/decoder/packed/packed.h"

namespace millrace {
namespace hls {
namespace {

std::uint32_t next_byte(std::uint32_t bit) {
  return (bit + 7) & ~7U;
}

// There is no 0 among packed values.
int with_zero(int value) {
  return value < 0 ? value : value + 1;
}

}  // namespace

bool PackedTableFeed::step(const ReadPort& encoded, SetupFifo& setup) {
  bool moved = false;
  while (sent_ < kQuantUnits && !setup.full()) {
    Burst word = {};
    for (unsigned i = 0; i < 8 && left_ > 0; ++i, at_ += 8) {
#pragma HLS PIPELINE II = 1
      word.part[i] = bytes_at(encoded, at_);
      for (unsigned half = 0; half < 4; ++half) is_sound_ = is_sound_ && half_of(word, 4 * i + half) != 0;
    }
    if (left_ > 0) --left_;
    setup.write(word);
    ++sent_;
    moved = true;
  }
  return moved;
}

void GroupUnpacker::start(const Job& job) {
  job_ = job;
  state_ = State::kSize;
  sizes_.start(job.image.source + packed_sizes(job));
  bytes_.start(job.image.source + packed_start(job));
  walk_.start();
  left_ = job.image.source_bytes - packed_start(job);
  blocks_left_ = mcus(job) * static_cast<std::uint32_t>(blocks_in_mcu(job));
  verdict_ = {Reason::kDone, 0, 0};
}

bool GroupUnpacker::step(BurstFifo& sizes, BurstFifo& groups, TokenFifo& tokens, VerdictFifo& verdicts) {
  bool moved = false;
  for (bool now = true; now; moved = moved || now) {
    now = false;
    switch (state_) {
      case State::kIdle:
        break;
      case State::kSize:
        now = take_size(sizes);
        break;
      case State::kLoad:
        now = load(groups);
        break;
      case State::kBlock:
        now = begin_block(tokens);
        break;
      case State::kValues:
        now = give_values(tokens);
        break;
      case State::kPad:
        now = pad(tokens);
        break;
      case State::kTell:
        if (verdicts.full()) break;
        verdicts.write(verdict_);
        state_ = State::kIdle;
        return true;
    }
  }
  return moved;
}

bool GroupUnpacker::take_size(BurstFifo& sizes) {
  std::uint64_t size = 0;
  if (!sizes_.take(sizes, 2, size)) return false;
  const std::uint32_t across = std::uint32_t{job_.mcu_columns} * (walk_.component() == 0 ? job_.h : 1U);
  const std::uint32_t blocks = across - static_cast<std::uint32_t>(walk_.column(job_));
  size_ = static_cast<std::uint32_t>(size);
  blocks_ = blocks < kGroupBlocks ? blocks : kGroupBlocks;
  block_ = 0;
  loaded_ = 0;
  if (size_ > left_ || size_ > GroupMemory::kMostBytes || size_ < GroupMemory::kHead + blocks_) {
    fail(Reason::kDamaged);
    return true;
  }
  left_ -= size_;
  state_ = State::kLoad;
  return true;
}

bool GroupUnpacker::load(BurstFifo& groups) {
  bool moved = false;
  std::uint64_t bytes = 0;
  while (loaded_ < size_) {
#pragma HLS PIPELINE II = 1
    const std::uint32_t rest = size_ - loaded_, count = rest < 8 ? rest : 8;
    if (!bytes_.take(groups, count, bytes)) return moved;
    group_.put(loaded_ / 8, bytes);
    loaded_ += count;
    moved = true;
  }
  begin_group();
  return true;
}

void GroupUnpacker::begin_group() {
  level_ = group_.number(0, 16);
  widths_ = group_.bits(16) & 0xffff;
  difference_ = 8 * (GroupMemory::kHead + blocks_);
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
#pragma HLS UNROLL
    const std::uint32_t before = 8 * i, left = blocks_ - 1 > before ? blocks_ - 1 - before : 0;
    bits += (widths_ >> (4 * i) & 15) * (left < 8 ? left : 8);
  }
  bit_ = next_byte(difference_ + bits);
  bitmaps_ = size_;
  state_ = State::kBlock;
}

// DC and where the values are.
bool GroupUnpacker::begin_block(TokenFifo& tokens) {
  if (tokens.full()) return false;
  if (block_ > 0) {
    const unsigned width = widths_ >> ((block_ - 1) / 8 * 4) & 15;
    if (width > 0) level_ += group_.number(difference_, width);
    difference_ += width;
  }
  shape_ = packed_shape(group_.byte(GroupMemory::kHead + block_));
  bitmap_ = 0;
  const bool has_room = bitmaps_ >= shape_.bitmap_bytes;
  if (has_room) bitmaps_ -= shape_.bitmap_bytes;
  if (has_room && shape_.bitmap_bytes > 0) {
    const std::uint64_t eight = std::uint64_t{group_.bits(8 * bitmaps_ + 32)} << 32 | group_.bits(8 * bitmaps_);
    bitmap_ = (eight & ~std::uint64_t{0} >> (64 - 8 * shape_.bitmap_bytes)) << 1;  // the uppermost bit has no place
  }
  const unsigned count = static_cast<unsigned>(__builtin_popcountll(bitmap_));
  if (shape_.aligned) bit_ = next_byte(bit_);
  upper_ = next_byte(bit_ + shape_.value_bits(count));
  after_ = bit_ + shape_.block_bits(count);
  rank_ = 0;
  if (!has_room || after_ > 8 * bitmaps_) {
    fail(Reason::kDamaged);
    return true;
  }
  if (level_ < INT16_MIN || level_ > INT16_MAX) {
    fail(Reason::kExtreme);
    return true;
  }
  tokens.write({static_cast<std::int16_t>(level_), 0, static_cast<std::uint8_t>(bitmap_ == 0)});
  ++verdict_.symbols;
  state_ = State::kValues;
  if (bitmap_ == 0) leave_block();
  return true;
}

bool GroupUnpacker::give_values(TokenFifo& tokens) {
  bool moved = false;
  while (bitmap_ != 0 && !tokens.full()) {
#pragma HLS PIPELINE II = 1
    const int at = __builtin_ctzll(bitmap_);
    bitmap_ &= bitmap_ - 1;
    tokens.write({static_cast<std::int16_t>(take_value()), static_cast<std::uint8_t>(at),
                  static_cast<std::uint8_t>(bitmap_ == 0)});
    ++verdict_.symbols;
    moved = true;
  }
  if (bitmap_ == 0) leave_block();
  return moved;
}

int GroupUnpacker::take_value() {
  const unsigned rank = rank_++, width = shape_.width(rank);
  const int value = group_.number(bit_, width);
  bit_ += width;
  if (shape_.raw) return value;
  if (rank < shape_.wide) return with_zero(group_.number(upper_ + 4 * rank, 4) * 256 + (value & 255));
  return static_cast<std::int8_t>(with_zero(value));  // a stored 127 does not occur; it gives what bytes give
}

void GroupUnpacker::leave_block() {
  bit_ = after_;
  ++verdict_.blocks;
  walk_.next(job_);
  --blocks_left_;
  state_ = State::kBlock;
  if (++block_ < blocks_) return;
  // The values end where the bitmaps begin, and the last group where the image does.
  if (next_byte(bit_) != 8 * bitmaps_ || (blocks_left_ == 0 && left_ != 0)) {
    fail(Reason::kDamaged);
    return;
  }
  state_ = blocks_left_ == 0 ? State::kTell : State::kSize;
}

// Blocks of nothing, for those that are not there.
bool GroupUnpacker::pad(TokenFifo& tokens) {
  bool moved = false;
  while (blocks_left_ > 0 && !tokens.full()) {
#pragma HLS PIPELINE II = 1
    tokens.write({0, kCoefficients - 1, 1});
    --blocks_left_;
    moved = true;
  }
  if (blocks_left_ > 0) return moved;
  state_ = State::kTell;
  return true;
}

void GroupUnpacker::fail(Reason reason) {
  verdict_.reason = reason;
  state_ = State::kPad;
}

}  // namespace hls
}  // namespace millrace
