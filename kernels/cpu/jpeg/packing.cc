#include "kernels/cpu/jpeg/packing.h"

#include <algorithm>
#include <cstring>

namespace millrace::kernels::jpeg {
namespace {

constexpr std::int64_t kBlocksPerClock = 1024;

}  // namespace

void Packing::begin() {
  predictors_ = {};
  taken_ = next_look_ = 0;
  at_ = 0;
}

bool Packing::seek(int line, int column, const DcPredictors& predictors) {
  predictors_ = predictors;
  return (std::int64_t{line} * grid_.columns + column) * grid_.blocks_in_mcu == taken_;
}

bool Packing::take(std::int16_t* blocks, std::int64_t count) {
  const int luma = grid_.components == 1 ? 1 : grid_.blocks_in_mcu - 2;
  bool odd = false;
  for (std::int64_t i = 0; i < count; ++i) {
    int& level = predictors_[static_cast<std::size_t>(std::max(0, at_ - luma + 1))];
    level += blocks[i * kCoefficients];
    odd |= level < -INT16_MAX || level > INT16_MAX;
    blocks[i * kCoefficients] = static_cast<std::int16_t>(level);
    if (++at_ == grid_.blocks_in_mcu) at_ = 0;
  }
  taken_ += count;
  if (taken_ >= next_look_) {
    next_look_ = taken_ + kBlocksPerClock;
    late_ = deadline_.is_over();
  }
  const bool taken = !odd && !late_ && encoder_.take(blocks, count);
  std::memset(blocks, 0, static_cast<std::size_t>(count) * kBlockBytes);
  return taken;
}

}  // namespace millrace::kernels::jpeg
