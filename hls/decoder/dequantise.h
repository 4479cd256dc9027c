// Tokens to dequantised blocks: a token a clock, a multiplication each; then a block leaves column by column, from the
// other of two memories, while the next one is filled.
//
// Blocks that inverse DCTs do not all do alike (a column whose magnitudes add up to more than 2,944) leave as nothing,
// and are remembered: kExtreme. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/jpeg/huffman.h"

namespace millrace {
namespace hls {

constexpr std::uint32_t kMostInColumn = 2944;

using ColumnFifo = Fifo<Column, 16>;  // two blocks
using FlagFifo = Fifo<std::uint8_t, 2>;

// Position in zig-zag order to position in natural order (T.81 figure A.6).
constexpr std::uint8_t kNatural[kCoefficients] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                                  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                                  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                                  58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

class Dequantiser {
 public:
  void start(const Job& job);
  // `setup`: the quantisation tables. `extremes`: whether there was such a block, behind the image's last one.
  bool step(SetupFifo& setup, TokenFifo& tokens, ColumnFifo& columns, FlagFifo& extremes);

 private:
  enum class State : std::uint8_t { kIdle, kLoad, kBlocks };

  bool load(SetupFifo& setup);
  bool work(TokenFifo& tokens, ColumnFifo& columns);
  void take(const Token& token);
  Column give();
  void turn();

  Job job_ = {};
  State state_ = State::kIdle;
  std::uint32_t loaded_ = 0;  // words
  std::uint16_t factors_[kTables * kCoefficients] = {};
  std::int16_t blocks_[2][kCoefficients] = {};  // column by column
  int filled_ = 0;                              // the one that tokens go to; the other one leaves
  bool is_full_ = false;                        // the one that is filled
  int column_ = kBlockSide;                     // that leaves next
  std::uint32_t magnitudes_[kBlockSide] = {};   // of the filled one's columns, up to what is too much
  std::uint32_t blocks_left_ = 0;               // to be filled
  BlockWalk walk_;
  bool is_extreme_ = false;
};

}  // namespace hls
}  // namespace millrace
