#include "kernels/cpu/jpeg/segments.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kNoLimit = 1 << 30;  // chunks: the gate ends it

// Hands out segments to streams, one after the other.
class Work {
 public:
  Work(const std::uint8_t* data, const SegmentTables& tables, std::span<LaneSegment> left)
      : data_(data), tables_(tables), left_(left) {}

  struct Stream {
    Cursor cursor;
    LaneSegment* segment = nullptr;  // nullptr: none was left
    bool is_at_end() const { return is_gate(cursor.table); }
  };

  void start_next(Stream& stream) {
    stream.segment = nullptr;
    if (left_.empty()) return;
    stream.segment = &left_.front();
    left_ = left_.subspan(1);
    stream.cursor = cursor_at(data_, stream.segment->bit, tables_.first(stream.segment->blocks), stream.segment->out);
  }

  void finish(Stream& stream) {
    stream.segment->end_bit = bit_position(stream.cursor, data_);
    stream.segment->bad = stream.cursor.bad != 0;
    start_next(stream);
  }

 private:
  const std::uint8_t* data_;
  const SegmentTables& tables_;
  std::span<LaneSegment> left_;
};

void decode_by_streams(const EntropyKernels& kernels, const std::uint8_t* data, const SegmentTables& tables,
                       std::span<LaneSegment> segments) {
  Work work(data, tables, segments);
  Work::Stream first, second;
  work.start_next(first);
  work.start_next(second);
  while (first.segment != nullptr && second.segment != nullptr) {
    kernels.run_two(first.cursor, second.cursor, kNoLimit);
    if (first.is_at_end()) work.finish(first);
    if (second.segment != nullptr && second.is_at_end()) work.finish(second);
  }
  for (Work::Stream* const last : {&first, &second}) {
    while (last->segment != nullptr) {
      kernels.run_one(last->cursor, kNoLimit);
      work.finish(*last);
    }
  }
}

}  // namespace

void SegmentTables::build(std::span<const McuBlock> mcu, int mcus) {
  chain_.clear();
  for (int i = 0; i < mcus; ++i) chain_.insert(chain_.end(), mcu.begin(), mcu.end());
  blocks_in_mcu_ = mcu.size();
  link(chain_);
  chain_.back().behind_block.table = gate_before(*mcu.front().dc);
}

void decode_segments(SegmentPath path, const EntropyKernels& kernels, const std::uint8_t* data,
                     const SegmentTables& tables, std::span<LaneSegment> segments) {
#if defined(__x86_64__)
  if (path == SegmentPath::kVectors) return decode_lanes_avx512(data, segments);
#endif
  static_cast<void>(path);
  decode_by_streams(kernels, data, tables, segments);
}

}  // namespace millrace::kernels::jpeg
