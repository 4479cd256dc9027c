#include "hls/decoder/dequantise.h"

namespace millrace {
namespace hls {

void Dequantiser::start(const Job& job) {
  job_ = job;
  state_ = State::kLoad;
  loaded_ = 0;
  blocks_left_ = mcus(job) * static_cast<std::uint32_t>(blocks_in_mcu(job));
  walk_.start();
  is_full_ = is_extreme_ = false;
  column_ = kBlockSide;
  for (int i = 0; i < kCoefficients; ++i) blocks_[0][i] = blocks_[1][i] = 0;
  for (int i = 0; i < kBlockSide; ++i) magnitudes_[i] = 0;
}

bool Dequantiser::step(SetupFifo& setup, TokenFifo& tokens, ColumnFifo& columns, FlagFifo& extremes) {
#pragma HLS ARRAY_PARTITION variable = blocks_ complete
#pragma HLS ARRAY_PARTITION variable = magnitudes_ complete
  bool moved = false;
  if (state_ == State::kLoad) moved = load(setup);
  if (state_ == State::kBlocks) moved = work(tokens, columns) || moved;
  if (state_ != State::kBlocks || blocks_left_ > 0 || column_ < kBlockSide || extremes.full()) return moved;
  extremes.write(is_extreme_ ? 1 : 0);
  state_ = State::kIdle;
  return true;
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
    if (++loaded_ == kQuantUnits) state_ = State::kBlocks;
  }
  return moved;
}

// A token in, and a column out, at a time.
bool Dequantiser::work(TokenFifo& tokens, ColumnFifo& columns) {
  bool moved = false;
  for (;;) {
#pragma HLS PIPELINE II = 1
    bool now = false;
    if (column_ < kBlockSide && !columns.full()) {
      columns.write(give());
      now = true;
    }
    if (blocks_left_ > 0 && !is_full_ && !tokens.empty()) {
      take(tokens.read());
      now = true;
    }
    if (is_full_ && column_ == kBlockSide) {
      turn();
      now = true;
    }
    if (!now) return moved;
    moved = true;
  }
}

void Dequantiser::take(const Token& token) {
  is_full_ = token.last != 0;
  if (token.value == 0) return;
  const int natural = kNatural[token.at & (kCoefficients - 1)], column = natural % kBlockSide;
  const int factor = factors_[job_.quant[walk_.component()] * kCoefficients + natural];
  const int value = token.value * factor;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value < 0 ? -value : value);
  const std::uint32_t sum = magnitudes_[column] + (magnitude <= kMostInColumn ? magnitude : kMostInColumn + 1);
  magnitudes_[column] = sum < kMostInColumn + 1 ? sum : kMostInColumn + 1;
  if (magnitude <= kMostInColumn)
    blocks_[filled_][column * kBlockSide + natural / kBlockSide] = static_cast<std::int16_t>(value);
}

Column Dequantiser::give() {
  std::int16_t* const from = &blocks_[1 - filled_][column_++ * kBlockSide];
  Column column;
  for (int i = 0; i < kBlockSide; ++i) {
#pragma HLS UNROLL
    column.at[i] = from[i];
    from[i] = 0;
  }
  return column;
}

// The block that was filled leaves, as nothing if it is out of the ordinary.
void Dequantiser::turn() {
  bool is_ordinary = true;
  for (int i = 0; i < kBlockSide; ++i) {
#pragma HLS UNROLL
    is_ordinary = is_ordinary && magnitudes_[i] <= kMostInColumn;
    magnitudes_[i] = 0;
  }
  is_extreme_ = is_extreme_ || !is_ordinary;
  for (int i = 0; i < kCoefficients && !is_ordinary; ++i) blocks_[filled_][i] = 0;
  filled_ = 1 - filled_;
  is_full_ = false;
  column_ = 0;
  --blocks_left_;
  walk_.next(job_);
}

}  // namespace hls
}  // namespace millrace
