// Hands the blocks of a whole scan to a packed::Encoder, with DC levels instead of differences. Thread-bound(the lane
// that owns the encoder).
#pragma once

#include <cstdint>

#include "kernels/base/deadline.h"
#include "kernels/cpu/jpeg/scan.h"
#include "kernels/jpeg/seek_index.h"
#include "kernels/packed/encoder.h"

namespace millrace::kernels::jpeg {

class Packing final : public SeekConsumer {
 public:
  // `encoder` has begun the image; outlives this.
  Packing(const SeekGrid& grid, packed::Encoder& encoder, const Deadline& deadline)
      : grid_(grid), encoder_(encoder), deadline_(deadline) {}

  // Again from the first block.
  void begin();

  // False: is_late(), a level beyond 16 bits, or the encoder wants no more.
  bool take(std::int16_t* blocks, std::int64_t count) override;
  // False: blocks would be left out or come twice.
  bool seek(int line, int column, const DcPredictors& predictors) override;
  DcPredictors predictors() const override { return predictors_; }
  void note_levels(std::int16_t*) override {}

  bool is_complete() const { return taken_ == grid_.mcus() * grid_.blocks_in_mcu; }
  bool is_late() const { return late_; }

 private:
  const SeekGrid grid_;
  packed::Encoder& encoder_;
  const Deadline deadline_;
  DcPredictors predictors_{};
  std::int64_t taken_ = 0;      // blocks
  std::int64_t next_look_ = 0;  // at the clock: when so many were taken
  int at_ = 0;                  // in the MCU
  bool late_ = false;
};

}  // namespace millrace::kernels::jpeg
