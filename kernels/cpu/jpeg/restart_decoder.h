// The MCUs of a window of a file with restart intervals. Its markers are an index that came with it: each interval
// begins at a byte, with predictors of 0. So intervals that the window does not meet are passed over by their markers,
// and of the others nothing after the window's last MCU is decoded. Short intervals are decoded many at once, long
// ones by two streams each.
//
// The data is hostile. All markers must be there, up to EOI. An interval that is decoded to its end must end where its
// marker is, but for less than a byte; other damage in what is passed over goes unseen, for it changes no pixel of the
// window, in libjpeg-turbo neither.
#pragma once

#include <array>

#include "kernels/cpu/jpeg/aligned.h"
#include "kernels/cpu/jpeg/scan.h"
#include "kernels/cpu/jpeg/seek_decoder.h"
#include "kernels/cpu/jpeg/segments.h"
#include "kernels/jpeg/restart_intervals.h"

namespace millrace::kernels::jpeg {

// Thread-bound(the lane that owns it).
class RestartDecoder {
 public:
  // `scan`: decodes long intervals; outlives this.
  RestartDecoder(Target target, SegmentPath path, Streams streams, ScanDecoder& scan)
      : target_(target), path_(path), streams_(streams), kernels_(entropy_kernels(target)), scan_(scan) {}
  RestartDecoder(const RestartDecoder&) = delete;
  RestartDecoder& operator=(const RestartDecoder&) = delete;

  // The MCUs of `window`, and those that stand before them in their intervals, to `consumer`. kStopped: it wanted no
  // more. kOdd: damaged, or another decoder should judge it; what the consumer got means nothing.
  // `mcu`: the blocks of one, circular. REQUIRES: has_restarts(header).
  ScanEnd decode(const Header& header, std::span<const McuBlock> mcu, const McuWindow& window, SeekConsumer& consumer);

  void trim(std::size_t bytes);

 private:
  // The first blocks of an interval.
  struct Piece {
    std::int64_t mcu = 0;     // the first
    std::int64_t blocks = 0;  // that are wanted
    bool whole = false;       // they are all, and a restart follows
    std::size_t begin = 0;    // bytes of data_
    std::size_t end = 0;
  };

  ScanEnd decode_intervals(RestartIntervals& intervals, const McuWindow& window);
  ScanEnd add(RestartIntervals& intervals, std::int64_t number, const McuWindow& window);
  std::int64_t wanted_end(std::int64_t end, const McuWindow& window) const;
  ScanEnd run_group();
  ScanEnd run_alone(const Piece& piece);
  ScanEnd deliver(const Piece& piece, const LaneSegment& segment);
  bool seek(const Piece& piece);
  bool reserve(std::size_t scan_bytes);

  static constexpr std::size_t kMostSegments = 128;

  Target target_;
  SegmentPath path_;
  Streams streams_;
  const EntropyKernels& kernels_;
  ScanDecoder& scan_;

  SeekGrid grid_;
  std::int64_t interval_ = 0;  // MCUs
  std::span<const McuBlock> mcu_;
  SegmentTables tables_;
  SeekConsumer* consumer_ = nullptr;

  std::array<Piece, kMostSegments> pieces_;
  std::array<LaneSegment, kMostSegments> segments_;
  std::size_t count_ = 0;
  std::int64_t blocks_ = 0;  // of all pieces
  std::size_t used_ = 0;     // bytes of data_
  AlignedBuffer data_, memory_;
};

// Whether markers are to be expected in the scan's data.
bool has_restarts(const Header& header);

}  // namespace millrace::kernels::jpeg
