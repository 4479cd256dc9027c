// Dequantised blocks to samples, bit-equal to libjpeg-turbo's accurate integer inverse DCT (islow: Loeffler, Ligtenberg
// and Moschytz, 12 multiplications, ICASSP 1989; 13-bit constants, two bits kept between the passes). A column a clock,
// then a row a clock; one block's rows leave while the next one's columns come. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/dequantise.h"

namespace millrace {
namespace hls {

using SampleFifo = Fifo<SampleRow, 16>;  // two blocks

class InverseDct {
 public:
  void start() { columns_ = rows_ = 0; }
  bool step(ColumnFifo& columns, SampleFifo& samples);

 private:
  std::int32_t block_[kBlockSide][kBlockSide] = {};  // [row][column], between the passes
  int columns_ = 0, rows_ = 0;                       // of the block at hand: that came, and that left
};

}  // namespace hls
}  // namespace millrace
