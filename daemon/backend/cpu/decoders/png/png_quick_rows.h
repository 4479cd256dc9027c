// The rows of an ordinary PNG file as they were before compression, filter bytes and all, one after the other, by our
// own inflating (kernels/cpu/png/inflate.h). What is odd, damaged or cut off is left to png_rows.h, whose verdict is
// Pillow's: a file that has all its rows here, with the right checksum behind them, is a picture there, too, with the
// same bytes.
//
// Thread-bound(its owner). Memory: some 250 KiB, and one row of the file. The image data is copied once, 64 KiB at a
// time, because chunks may be of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/cpu/decoders/png/png_chunks.h"
#include "kernels/base/target.h"
#include "kernels/cpu/png/inflate.h"
#include "proto/base/bytes.h"

namespace millrace {

class PngQuickRows {
 public:
  static constexpr std::size_t kSlack = kernels::png::kInflateOutputSlack;

  struct Rows {
    std::size_t bytes;  // of each, filter byte and all
    std::uint64_t count;
  };

  // `chunks` outlives this. nullptr: no memory.
  static std::unique_ptr<PngQuickRows> create(PngChunks& chunks, const Rows& rows, kernels::Target target,
                                              const kernels::Deadline& deadline);

  // The next row, good until the next call, with kSlack readable bytes behind it; nullptr: odd, or late. REQUIRES: one
  // is left.
  const std::uint8_t* next();

  // After the last row: how many bytes of image data the stream took; 0: odd, or late.
  std::uint64_t finish();

  // The clock is looked at once for 64 KiB of the file and for 96 KiB of rows, however little either gives.
  bool is_late() const { return is_late_; }

 private:
  static constexpr std::size_t kFed = std::size_t{64} << 10;       // of image data at a time
  static constexpr std::size_t kInflated = std::size_t{96} << 10;  // at a time, the history not counted
  static constexpr std::size_t kKept = 8;                          // bytes before those to come

  PngQuickRows(PngChunks& chunks, const Rows& rows, kernels::Target target, const kernels::Deadline& deadline);

  bool inflate_more();
  void feed();
  void make_room();

  PngChunks& chunks_;
  kernels::Deadline deadline_;
  kernels::png::Inflater inflater_;
  kernels::png::InflateInput in_;
  kernels::png::InflateOutput out_;
  ByteView piece_;  // what is left of a piece of image data
  std::uint64_t fed_ = 0;
  std::size_t row_bytes_;
  std::uint64_t left_;          // bytes that are still to be inflated
  std::uint32_t checksum_ = 1;  // Adler-32 of what was
  bool is_over_ = false;        // the stream's data
  bool is_late_ = false;
  std::size_t room_;                        // of the window
  std::unique_ptr<std::uint8_t[]> window_;  // what was inflated last
  const std::uint8_t* row_ = nullptr;       // the next one, in it
  std::uint8_t fed_bytes_[kKept + kFed + kernels::png::kInflateInputSlack];
};

}  // namespace millrace
