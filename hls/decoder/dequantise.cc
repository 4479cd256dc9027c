#include "hls/decoder/dequantise.h"

namespace millrace {
namespace hls {

void Dequantiser::start(const Job& job) {
  job_ = job;
  state_ = State::kLoad;
  loaded_ = 0;
  blocks_left_ = mcus(job) * static_cast<std::uint32_t>(blocks_in_mcu(job));
  walk_.start();
  is_extreme_ = false;
  for (int i = 0; i < kCoefficients; ++i) block_[i] = 0;
  for (int i = 0; i < kBlockSide; ++i) magnitudes_[i] = 0;
}

bool Dequantiser::step(SetupFifo& setup, TokenFifo& tokens, ColumnFifo& columns, FlagFifo& extremes) {
  bool moved = false;
  for (;;) {
    bool now = false;
    if (state_ == State::kLoad) now = load(setup);
    if (state_ == State::kTake) now = take(tokens) || now;
    if (state_ == State::kGive) now = give(columns) || now;
    if (state_ == State::kTell && !extremes.full()) {
      extremes.write(is_extreme_ ? 1 : 0);
      state_ = State::kIdle;
      return true;
    }
    if (!now) return moved;
    moved = true;
  }
}

bool Dequantiser::load(SetupFifo& setup) {
  bool moved = false;
  while (state_ == State::kLoad && !setup.empty()) {
#pragma HLS PIPELINE II = 1
    const Burst word = setup.read();
    for (unsigned i = 0; i < kBurstBytes / 2; ++i) {
#pragma HLS UNROLL
      factors_[loaded_ * (kBurstBytes / 2) + i] = half_of(word, i);
    }
    moved = true;
    if (++loaded_ == kQuantUnits) state_ = State::kTake;
  }
  return moved;
}

bool Dequantiser::take(TokenFifo& tokens) {
  bool moved = false;
  while (state_ == State::kTake && !tokens.empty()) {
#pragma HLS PIPELINE II = 1
    const Token token = tokens.read();
    if (token.value != 0) put(token);
    moved = true;
    if (token.last == 0) continue;
    state_ = State::kGive;
    column_ = 0;
    for (int i = 0; i < kBlockSide; ++i) {
      if (magnitudes_[i] <= kMostInColumn) continue;
      is_extreme_ = true;
      for (int k = 0; k < kCoefficients; ++k) block_[k] = 0;
    }
  }
  return moved;
}

void Dequantiser::put(const Token& token) {
  const int natural = kNatural[token.at & (kCoefficients - 1)], column = natural % kBlockSide;
  const int factor = factors_[job_.quant[walk_.component()] * kCoefficients + natural];
  const int value = token.value * factor;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value < 0 ? -value : value);
  const std::uint32_t sum = magnitudes_[column] + (magnitude < kMostInColumn ? magnitude : kMostInColumn + 1);
  magnitudes_[column] = sum < kMostInColumn + 1 ? sum : kMostInColumn + 1;
  if (magnitude <= kMostInColumn) block_[column * kBlockSide + natural / kBlockSide] = static_cast<std::int16_t>(value);
}

bool Dequantiser::give(ColumnFifo& columns) {
  bool moved = false;
  while (column_ < kBlockSide && !columns.full()) {
#pragma HLS PIPELINE II = 1
    Column column;
    for (int i = 0; i < kBlockSide; ++i) {
#pragma HLS UNROLL
      column.at[i] = block_[column_ * kBlockSide + i];
      block_[column_ * kBlockSide + i] = 0;
    }
    magnitudes_[column_] = 0;
    columns.write(column);
    ++column_;
    moved = true;
  }
  if (column_ < kBlockSide) return moved;
  walk_.next(job_);
  state_ = --blocks_left_ == 0 ? State::kTell : State::kTake;
  return true;
}

}  // namespace hls
}  // namespace millrace
