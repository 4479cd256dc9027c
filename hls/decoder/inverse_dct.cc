#include "hls/decoder/inverse_dct.h"

namespace millrace {
namespace hls {
namespace {

constexpr int kConstantBits = 13, kKeptBits = 2;

inline std::int32_t descale(std::int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

std::uint32_t to_byte(std::int32_t value) {
  return value < 0 ? 0U : value > 255 ? 255U : static_cast<std::uint32_t>(value);
}

struct DctLine {
  std::int32_t at[kBlockSide];
};

// One side's transform, scaled by 2^13.
inline DctLine transform_line(const DctLine& in) {
#pragma HLS INLINE
  const std::int32_t* x = in.at;
  const std::int32_t z1 = (x[2] + x[6]) * 4433;
  const std::int32_t low = z1 - x[6] * 15137, high = z1 + x[2] * 6270;
  const std::int32_t sum = (x[0] + x[4]) * (1 << kConstantBits), difference = (x[0] - x[4]) * (1 << kConstantBits);
  const std::int32_t even[4] = {sum + high, difference + low, difference - low, sum - high};

  const std::int32_t z5 = (x[7] + x[3] + x[5] + x[1]) * 9633;
  const std::int32_t a = (x[7] + x[1]) * -7373, b = (x[5] + x[3]) * -20995;
  const std::int32_t c = (x[7] + x[3]) * -16069 + z5, d = (x[5] + x[1]) * -3196 + z5;
  const std::int32_t odd[4] = {x[1] * 12299 + a + d, x[3] * 25172 + b + c, x[5] * 16819 + b + d, x[7] * 2446 + a + c};

  DctLine out;
  for (int i = 0; i < 4; ++i) {
#pragma HLS UNROLL
    out.at[i] = even[i] + odd[i];
    out.at[7 - i] = even[i] - odd[i];
  }
  return out;
}

SampleRow transform_row(const std::int32_t (&row)[kBlockSide]) {
  DctLine line;
  for (int i = 0; i < kBlockSide; ++i) line.at[i] = row[i];
  line = transform_line(line);
  SampleRow samples = 0;
  for (int i = 0; i < kBlockSide; ++i) {
#pragma HLS UNROLL
    samples |= SampleRow{to_byte(descale(line.at[i], kConstantBits + kKeptBits + 3) + 128)} << (8 * i);
  }
  return samples;
}

}  // namespace

bool InverseDct::step(ColumnFifo& columns, SampleFifo& samples) {
#pragma HLS ARRAY_PARTITION variable = blocks_ complete
  bool moved = false;
  for (;;) {
#pragma HLS PIPELINE II = 1
    bool now = false;
    if (columns_ < kBlockSide && !columns.empty()) {
      put_column(columns.read());
      now = true;
    }
    if (rows_ < kBlockSide && !samples.full()) {
      samples.write(transform_row(blocks_[1 - filled_][rows_++]));
      now = true;
    }
    if (columns_ == kBlockSide && rows_ == kBlockSide) {
      filled_ = 1 - filled_;
      columns_ = rows_ = 0;
      now = true;
    }
    if (!now) return moved;
    moved = true;
  }
}

void InverseDct::put_column(const Column& column) {
  DctLine line;
  for (int i = 0; i < kBlockSide; ++i) line.at[i] = column.at[i];
  line = transform_line(line);
  for (int i = 0; i < kBlockSide; ++i) blocks_[filled_][i][columns_] = descale(line.at[i], kConstantBits - kKeptBits);
  ++columns_;
}

}  // namespace hls
}  // namespace millrace
