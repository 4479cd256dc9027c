#include "kernels/cpu/jpeg/seek_decoder.h"

#include <algorithm>
#include <cstring>

#include "kernels/jpeg/unstuff.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr std::size_t kPieceBlocks = 64;  // about so many in a piece

// That are decoded before any goes to the consumer. Some forty pieces keep sixteen lanes busy, twenty would not.
constexpr std::size_t group_blocks(SegmentPath path) {
  return path == SegmentPath::kVectors ? 2048 : 1024;
}

}  // namespace

ScanEnd SeekDecoder::decode(const SeekIndex& index, FileBytes scan_untrusted, std::span<const McuBlock> mcu,
                            const McuWindow& window, SeekConsumer& consumer) {
  scan_ = scan_untrusted;
  mcu_ = mcu.data();
  consumer_ = &consumer;
  columns_ = index.grid().columns;
  end_ = std::int64_t{window.lines.end - 1} * columns_ + window.columns.end;
  count_ = 0;
  mcus_ = 0;
  tables_.build(mcu, std::max(static_cast<int>(kPieceBlocks / mcu.size()), index.widest()));
  const std::span<const SeekPlace> places = index.places();
  const std::int64_t covered = places.back().mcu;
  std::size_t at = 0,
              next = 0;  // the last place that is not after the line's first MCU; the first one not yet decoded
  for (int line = window.lines.begin; line < window.lines.end; ++line) {
    const std::int64_t first = std::int64_t{line} * columns_ + window.columns.begin;
    const std::int64_t end = std::min(std::int64_t{line} * columns_ + window.columns.end, covered);
    if (first >= end) break;
    while (places[at + 1].mcu <= first) ++at;
    const std::size_t begin = std::max(at, next);
    next = begin;
    while (places[next].mcu < end) ++next;
    const ScanEnd added = add(places.subspan(begin, next - begin + 1));
    if (added != ScanEnd::kDone) return added;
  }
  return run_group();
}

// From the first to the last of `places`, in pieces.
ScanEnd SeekDecoder::add(std::span<const SeekPlace> places) {
  const auto most = static_cast<std::int64_t>(kPieceBlocks / tables_.blocks_in_mcu());
  const auto most_in_group = static_cast<std::int64_t>(group_blocks(path_) / tables_.blocks_in_mcu());
  for (std::size_t begin = 0, end = 1; end < places.size(); begin = end++) {
    while (end + 1 < places.size() && places[end + 1].mcu - places[begin].mcu <= most) ++end;
    const Piece piece{&places[begin], &places[end]};
    if (count_ == kMostSegments || (count_ > 0 && mcus_ + mcus_of(piece) > most_in_group)) {
      const ScanEnd done = run_group();
      if (done != ScanEnd::kDone) return done;
    }
    mcus_ += mcus_of(piece);
    pieces_[count_++] = piece;
  }
  return ScanEnd::kDone;
}

// Decodes the pieces gathered, and hands them over in order.
ScanEnd SeekDecoder::run_group() {
  if (count_ == 0) return ScanEnd::kDone;
  if (!reserve_group() || !unstuff_group()) return ScanEnd::kOdd;
  const auto in_mcu = static_cast<std::int64_t>(tables_.blocks_in_mcu());
  char* const base = reinterpret_cast<char*>(memory_.data()) + kBlockBytes;
  char* out = base;
  for (std::size_t i = 0; i < count_; ++i) {
    segments_[i].blocks = static_cast<int>(mcus_of(pieces_[i]) * in_mcu);
    segments_[i].first = mcu_;
    segments_[i].out = out;
    out += (segments_[i].blocks + 1) * kBlockBytes;
  }
  decode_segments(path_, kernels_, data_.data(), tables_, {segments_.data(), count_});
  ScanEnd end = ScanEnd::kDone;
  for (std::size_t i = 0; i < count_ && end == ScanEnd::kDone; ++i) end = deliver(pieces_[i], segments_[i]);
  if (end != ScanEnd::kDone) std::memset(base, 0, static_cast<std::size_t>(out - base));
  count_ = 0;
  mcus_ = 0;
  return end;
}

bool SeekDecoder::reserve_group() {
  const std::size_t blocks = static_cast<std::size_t>(mcus_) * tables_.blocks_in_mcu();
  std::size_t bytes = kUnstuffSlack + lane_reach(static_cast<int>(blocks));
  for (std::size_t i = 0; i < count_; ++i)
    bytes += static_cast<std::size_t>((pieces_[i].end->bit >> 3) - (pieces_[i].begin->bit >> 3)) + 1;
  return data_.reserve(bytes) != nullptr && memory_.reserve((blocks + count_ + 1) * kBlockBytes) != nullptr;
}

// Pieces that follow each other in the file share a byte.
bool SeekDecoder::unstuff_group() {
  std::uint8_t* const data = data_.data();
  std::size_t used = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Piece& piece = pieces_[i];
    if (i > 0 && pieces_[i - 1].end != piece.begin) ++used;
    const auto begin = static_cast<std::size_t>(piece.begin->bit >> 3);
    const auto end = static_cast<std::size_t>(piece.end->bit >> 3);
    const Unstuffed unstuffed = unstuff(scan_.subspan(begin, end - begin), data + used, target_);
    if (unstuffed.marker != -1) return false;
    segments_[i].bit = static_cast<std::int64_t>(8 * used) + (piece.begin->bit & 7);
    used += unstuffed.size;
    piece.expected_end = static_cast<std::int64_t>(8 * used) + (piece.end->bit & 7);
    data[used] = scan_[end];  // there is a marker after the data
  }
  return true;
}

ScanEnd SeekDecoder::deliver(const Piece& piece, const LaneSegment& segment) {
  if (segment.bad || segment.end_bit != piece.expected_end) return ScanEnd::kOdd;
  const auto line = static_cast<int>(piece.begin->mcu / columns_),
             column = static_cast<int>(piece.begin->mcu % columns_);
  if (!consumer_->seek(line, column, piece.begin->predictors)) return ScanEnd::kStopped;
  const auto in_mcu = static_cast<std::int64_t>(tables_.blocks_in_mcu());
  const std::int64_t all = segment.blocks, wanted = std::min(all, (end_ - piece.begin->mcu) * in_mcu);
  auto* const blocks = reinterpret_cast<std::int16_t*>(segment.out);
  if (!consumer_->take(blocks, wanted)) return ScanEnd::kStopped;
  DcPredictors predictors = consumer_->predictors();
  std::int16_t* const rest = blocks + wanted * kCoefficients;
  add_rest(rest, all - wanted, predictors);
  std::memset(rest, 0, static_cast<std::size_t>((all - wanted) * kBlockBytes));
  return predictors == piece.end->predictors ? ScanEnd::kDone : ScanEnd::kOdd;
}

// DC prediction alone, of blocks after the window.
void SeekDecoder::add_rest(const std::int16_t* blocks, std::int64_t count, DcPredictors& predictors) const {
  const auto in_mcu = static_cast<std::int64_t>(tables_.blocks_in_mcu());
  const std::int64_t luma = in_mcu == 1 ? 1 : in_mcu - 2;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = i % in_mcu;
    predictors[static_cast<std::size_t>(at < luma ? 0 : at - luma + 1)] += blocks[i * kCoefficients];
  }
}

void SeekDecoder::trim(std::size_t bytes) {
  data_.trim(bytes);
  memory_.trim(bytes);
}

}  // namespace millrace::kernels::jpeg
