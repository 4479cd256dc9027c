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
  void start() {
    columns_ = 0;
    rows_ = kBlockSide;
  }
  bool step(ColumnFifo& columns, SampleFifo& samples);

 private:
  void put_column(const Column& column);

  std::int32_t blocks_[2][kBlockSide][kBlockSide] = {};  // [row][column], between the passes
  int filled_ = 0;                                       // the one whose columns come; the other one's rows leave
  int columns_ = 0, rows_ = kBlockSide;                  // that came, and that left
};

}  // namespace hls
}  // namespace millrace
