#include "hls/decoder/packed/packed_slot.h"

namespace millrace {
namespace hls {

void PackedSlot::start(const Job& job, const Ports&) {
  sizes_.clear();
  groups_.clear();
  verdicts_.clear();
  const std::uint32_t begin = packed_start(job);
  size_loader_.start(job.image.source + packed_sizes(job), 2 * packed_groups(job));
  group_loader_.stop();
  if (begin < job.image.source_bytes) group_loader_.start(job.image.source + begin, job.image.source_bytes - begin);
  table_feed_.start(job);
  unpacker_.start(job);
  picture_.start(job, {0, 0});
}

bool PackedSlot::step(const Ports& ports) {
#pragma HLS DATAFLOW
  const bool tables = table_feed_.step(ports.encoded, picture_.quants());
  const bool sizes = size_loader_.step(ports.encoded, sizes_);
  const bool loaded = group_loader_.step(ports.encoded, groups_);
  const bool unpacked = unpacker_.step(sizes_, groups_, picture_.tokens(), verdicts_);
  const bool made = picture_.step(ports);
  return tables || sizes || loaded || unpacked || made;
}

Outcome PackedSlot::take_outcome() {
  const Reason picture = picture_.take_reason();
  ScanVerdict groups = verdicts_.read();
  if (groups.reason == Reason::kDone && !table_feed_.is_sound()) groups.reason = Reason::kDamaged;
  const Reason reason = picture == Reason::kBadDescriptor || groups.reason == Reason::kDone ? picture : groups.reason;
  return {reason, groups.symbols, picture_.sum()};
}

}  // namespace hls
}  // namespace millrace
