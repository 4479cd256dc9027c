// One batch under way: what was asked, the slot it fills, and how far each sample is. Shared by the fetch tasks and
// decode jobs that point into it; only the control thread changes it. Thread-bound(control), but for `request` and
// `stop`, which do not change once it runs.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/memory/arena.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/batch_result.h"
#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/stop_flag.h"
#include "daemon/pipeline/ready_samples.h"
#include "daemon/slots/slot_pool.h"
#include "proto/base/result.h"

namespace millrace {

// One sample of it.
struct SampleRun {
  std::optional<Error> error;
  std::optional<SourceInfo> source;
  SampleGeometry geometry;
  std::uint64_t offset = 0;   // of its pixels from the slot's start, once laid out
  Bytes bytes;                // of its pixels
  std::uint32_t tried = 0;    // backends that gave it back: bit i
  std::uint32_t backend = 0;  // that made it, or tried last
  std::uint8_t flags = 0;     // shm::SampleFlags
  bool laid_out = false;
  bool done = false;  // made, or given up
  std::chrono::microseconds fetch{0}, queued{0}, decode{0}, transform{0};
};

// The daemon lacks what it takes to read: since when, and when it tries again.
struct HostWant {
  std::chrono::steady_clock::time_point since;
  std::chrono::milliseconds pause;
  bool pausing = false;
};

struct BatchRun {
  enum class Phase : std::uint8_t { kQueued, kRunning, kMending, kFailing, kEnded };

  SessionId session{};
  BatchRequest request;
  std::optional<EpochMark> epoch;
  std::optional<Size> one_size;  // of every image; nullopt: packed

  Phase phase = Phase::kQueued;
  std::shared_ptr<StopFlag> stop = std::make_shared<StopFlag>();  // shared with fetch threads and lanes
  std::optional<SlotLease> lease;
  // Shared: keeps the lease's memory until the last lane is done, whatever becomes of the session.
  std::shared_ptr<Arena> arena;
  std::optional<boost::asio::steady_timer> deadline;
  std::optional<boost::asio::steady_timer> fetch_later;

  std::vector<SampleRun> samples;
  std::vector<std::uint32_t> order;  // positions that end up in the tensor, in order; set by mend()
  std::vector<ReadySamples> ready;   // for each backend
  // Packed only: no sample has a place before all have a size.
  std::uint32_t unsized = 0;                        // samples without a size so far
  bool placed = false;                              // all that have a size have their place
  std::vector<std::optional<EncodedImage>> packed;  // fetched and waiting for the others' sizes
  std::vector<std::uint32_t> unkept;                // with a size; their bytes found no room and are read again

  std::uint32_t next_fetch = 0;            // first sample never given to a fetch task
  std::vector<std::uint32_t> fetch_again;  // given to one, and not read
  bool in_fetch_queue = false;
  std::optional<HostWant> want;     // what the daemon lacked when it last tried to read
  std::uint32_t fetched = 0;        // came back from fetch, for better or worse
  std::uint32_t finished = 0;       // made, or given up
  std::uint32_t bad = 0;            // of the finished ones, given up
  std::uint32_t made_in_order = 0;  // the first ones, up to one that is not made
  std::uint32_t outstanding = 0;    // fetch tasks and jobs that will still call back
  Bytes tensor;                     // bytes of the finished tensor
  Bytes slot_bytes;                 // packed, and too large for its slot: what it needs

  std::uint32_t count() const { return static_cast<std::uint32_t>(samples.size()); }
  bool has_places() const { return one_size || placed; }
  bool unfetched() const { return next_fetch < count() || !fetch_again.empty(); }
  bool running() const { return phase == Phase::kRunning; }
  // Whether all samples before the lowest-numbered bad one are made, so that no other one can turn out to be it.
  bool first_bad_is_known();
  SampleFailure failure(std::uint32_t index) const;
  std::vector<SampleFailure> failures() const;  // of all samples, in order
};

// Gives a fetched sample its boxes and, for a one-size batch, its place in the slot. An error is the sample's.
Result<void> lay_out_sample(BatchRun& batch, std::uint32_t index, const SourceInfo& source, std::uint32_t max_side);

// What a packed batch cannot have in its slot.
struct Overflow {
  std::vector<std::uint32_t> samples;
  Bytes needed;  // by all its samples together
};

// The largest samples are too many until the rest fits, of two alike the later one: so a header that claims anything
// costs its own sample first, and as few as possible are lost. It depends on sizes alone, not on who was read when.
Overflow overflow(const BatchRun& batch);

// Gives every sample of a packed batch that has no error its place, in order. REQUIRES: they fit, see overflow().
void lay_out_packed(BatchRun& batch);

// A sample's part of the slot. REQUIRES: laid out.
SlotRange range_of(const SampleRun& sample);

}  // namespace millrace
