// The MCUs of a window, decoded from where a seek index says that they are. Only these parts of the file are looked at.
//
// Nothing that the index says is believed: each piece has to end at the very bit, and with the DC predictors, at which
// the index has the next one begin. A wrong index can cost time, but neither reads nor writes out of bounds.
#pragma once

#include <array>

#include "kernels/cpu/jpeg/aligned.h"
#include "kernels/cpu/jpeg/scan.h"
#include "kernels/cpu/jpeg/segments.h"
#include "kernels/jpeg/mcu_window.h"
#include "kernels/jpeg/seek_index.h"

namespace millrace::kernels::jpeg {

// Thread-bound(the lane that owns it).
class SeekDecoder {
 public:
  SeekDecoder(Target target, SegmentPath path) : target_(target), path_(path), kernels_(entropy_kernels(target)) {}

  // The MCUs of `window` that the index covers to `consumer`, and some of those between them, none after the window's
  // last. kStopped: the consumer wanted no more. kOdd: the index is wrong, or the data damaged; what the consumer got
  // means nothing. `mcu`: the blocks of one, circular.
  ScanEnd decode(const SeekIndex& index, FileBytes scan_untrusted, std::span<const McuBlock> mcu,
                 const McuWindow& window, SeekConsumer& consumer);

  void trim(std::size_t bytes);

 private:
  // Between two places of the index; decoded in one go.
  struct Piece {
    const SeekPlace* begin;
    const SeekPlace* end;
    std::int64_t expected_end = 0;  // bit of the unstuffed data
  };

  ScanEnd add(std::span<const SeekPlace> places);
  ScanEnd run_group();
  bool reserve_group();
  bool unstuff_group();
  ScanEnd deliver(const Piece& piece, const LaneSegment& segment);
  void add_rest(const std::int16_t* blocks, std::int64_t count, DcPredictors& predictors) const;
  static std::int64_t mcus_of(const Piece& piece) { return piece.end->mcu - piece.begin->mcu; }

  static constexpr std::size_t kMostSegments = 64;

  Target target_;
  SegmentPath path_;
  const EntropyKernels& kernels_;
  FileBytes scan_;
  const McuBlock* mcu_ = nullptr;
  SegmentTables tables_;
  SeekConsumer* consumer_ = nullptr;
  int columns_ = 0;       // of the image
  std::int64_t end_ = 0;  // the MCU after the window's last

  std::array<Piece, kMostSegments> pieces_;
  std::array<LaneSegment, kMostSegments> segments_;
  std::size_t count_ = 0;
  std::int64_t mcus_ = 0;  // of all pieces
  AlignedBuffer data_, memory_;
};

}  // namespace millrace::kernels::jpeg
