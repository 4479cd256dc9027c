#include "kernels/cpu/jpeg/restart_decoder.h"

#include <algorithm>
#include <cstring>

#include "kernels/jpeg/unstuff.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr std::int64_t kGroupBlocks = 4096;  // that are decoded before any goes to the consumer
constexpr std::int64_t kLongBlocks = 1024;   // an interval of more is decoded alone
constexpr std::size_t kFewestForLanes = 16;  // segments; fewer leave lanes idle

}  // namespace

bool has_restarts(const Header& header) {
  return header.restart_interval > 0 && header.restart_interval < seek_grid(header).mcus();
}

ScanEnd RestartDecoder::decode(const Header& header, std::span<const McuBlock> mcu, const McuWindow& window,
                               SeekConsumer& consumer) {
  grid_ = seek_grid(header);
  interval_ = header.restart_interval;
  mcu_ = mcu;
  consumer_ = &consumer;
  count_ = used_ = 0;
  blocks_ = 0;
  if (!reserve(header.scan.size())) return ScanEnd::kOdd;
  const auto in_mcu = static_cast<std::int64_t>(mcu.size());
  tables_.build(mcu, static_cast<int>(std::min(interval_, kLongBlocks / in_mcu)));
  const std::int64_t count = (grid_.mcus() + interval_ - 1) / interval_;
  RestartIntervals intervals(header.scan, count, target_);
  const ScanEnd end = decode_intervals(intervals, window);
  if (end != ScanEnd::kDone) return end;
  return intervals.skip_to(count) ? ScanEnd::kDone : ScanEnd::kOdd;  // a marker too many or too few is seen anywhere
}

ScanEnd RestartDecoder::decode_intervals(RestartIntervals& intervals, const McuWindow& window) {
  std::int64_t next = 0;  // interval
  for (int line = window.lines.begin; line < window.lines.end; ++line) {
    const std::int64_t first = std::int64_t{line} * grid_.columns;
    const std::int64_t end = (first + window.columns.end - 1) / interval_ + 1;
    for (next = std::max(next, (first + window.columns.begin) / interval_); next < end; ++next) {
      const ScanEnd added = add(intervals, next, window);
      if (added != ScanEnd::kDone) return added;
    }
  }
  return run_group();
}

ScanEnd RestartDecoder::add(RestartIntervals& intervals, std::int64_t number, const McuWindow& window) {
  const auto in_mcu = static_cast<std::int64_t>(mcu_.size());
  const std::int64_t first = number * interval_, end = std::min(first + interval_, grid_.mcus());
  const std::int64_t wanted = wanted_end(end, window);
  Piece piece{
      .mcu = first, .blocks = (wanted - first) * in_mcu, .whole = wanted == end && end < grid_.mcus(), .begin = used_};
  const bool is_long = piece.blocks > kLongBlocks;
  if (is_long || count_ == kMostSegments || blocks_ + piece.blocks > kGroupBlocks) {
    const ScanEnd done = run_group();
    if (done != ScanEnd::kDone) return done;
    piece.begin = 0;
  }
  const auto size = intervals.skip_to(number) ? intervals.take(data_.data() + piece.begin) : std::nullopt;
  if (!size) return ScanEnd::kOdd;
  piece.end = piece.begin + *size;
  if (is_long) return run_alone(piece);
  used_ = piece.end;
  blocks_ += piece.blocks;
  pieces_[count_++] = piece;
  return ScanEnd::kDone;
}

// Behind the last MCU of the window before `end`, which there is.
std::int64_t RestartDecoder::wanted_end(std::int64_t end, const McuWindow& window) const {
  const std::int64_t columns = grid_.columns;
  std::int64_t line = std::min<std::int64_t>((end - 1) / columns, window.lines.end - 1);
  if (end <= line * columns + window.columns.begin) --line;
  return std::min(end, line * columns + window.columns.end);
}

// Decodes the pieces gathered, and hands them over in order.
ScanEnd RestartDecoder::run_group() {
  if (count_ == 0) return ScanEnd::kDone;
  char* const base = reinterpret_cast<char*>(memory_.data()) + kBlockBytes;
  char* out = base;
  for (std::size_t i = 0; i < count_; ++i) {
    segments_[i] = {.bit = static_cast<std::int64_t>(8 * pieces_[i].begin),
                    .blocks = static_cast<int>(pieces_[i].blocks),
                    .first = mcu_.data(),
                    .out = out};
    out += (pieces_[i].blocks + 1) * kBlockBytes;
  }
  const SegmentPath path = count_ < kFewestForLanes ? SegmentPath::kTurns : path_;
  decode_segments(path, kernels_, data_.data(), tables_, {segments_.data(), count_});
  ScanEnd end = ScanEnd::kDone;
  for (std::size_t i = 0; i < count_ && end == ScanEnd::kDone; ++i) end = deliver(pieces_[i], segments_[i]);
  if (end != ScanEnd::kDone) std::memset(base, 0, static_cast<std::size_t>(out - base));
  count_ = used_ = 0;
  blocks_ = 0;
  return end;
}

ScanEnd RestartDecoder::deliver(const Piece& piece, const LaneSegment& segment) {
  const std::int64_t left = static_cast<std::int64_t>(8 * piece.end) - segment.end_bit;
  if (segment.bad || left < 0 || (piece.whole && left >= 8)) return ScanEnd::kOdd;
  if (!seek(piece)) return ScanEnd::kStopped;
  auto* const blocks = reinterpret_cast<std::int16_t*>(segment.out);
  return consumer_->take(blocks, segment.blocks) ? ScanEnd::kDone : ScanEnd::kStopped;
}

// A long one, whose data is all that data_ holds.
ScanEnd RestartDecoder::run_alone(const Piece& piece) {
  std::memset(data_.data() + piece.end, 0, kDataPadding);
  if (!seek(piece)) return ScanEnd::kStopped;
  const std::int64_t first = piece.mcu * static_cast<std::int64_t>(mcu_.size());
  const ScanData scan{.data = data_.data(),
                      .size = piece.end,
                      .mcu = mcu_,
                      .first = first,
                      .blocks = first + piece.blocks,
                      .expected = piece.end,
                      .ends_data = piece.whole};
  return streams_ == Streams::kTwo ? scan_.decode(scan, *consumer_) : scan_.decode_alone(scan, *consumer_);
}

bool RestartDecoder::seek(const Piece& piece) {
  return consumer_->seek(static_cast<int>(piece.mcu / grid_.columns), static_cast<int>(piece.mcu % grid_.columns), {});
}

bool RestartDecoder::reserve(std::size_t scan_bytes) {
  constexpr std::size_t kBehind = std::max(kUnstuffSlack + lane_reach(kLongBlocks), kDataPadding);
  constexpr std::size_t kBlocks = kGroupBlocks + kMostSegments + 1;
  return data_.reserve(scan_bytes + kBehind) != nullptr && memory_.reserve(kBlocks * kBlockBytes) != nullptr;
}

void RestartDecoder::trim(std::size_t bytes) {
  data_.trim(bytes);
  memory_.trim(bytes);
}

}  // namespace millrace::kernels::jpeg
