// One batch, from its request until nobody works on it any more: how far it is, how far each of its samples is, and
// which bytes of its slot are whose. It alone changes these; a step that is not drawn here is a bug of ours, and aborts.
//
//   queued ──begin()──▶ running ──finalize()──▶ finalizing ──end()──▶ ended
//      └───────────────────┴──────fail()───────┴──▶ failing ──end()──▶ ended
//
// and each sample while the batch runs:
//
//   unread ◀──▶ reading ──▶ waiting ◀──▶ making ──▶ made
//      ▲           │           ▲             ▲
//      │           ▼           ▼             │
//      ├──────── deferred ─────┴─────────────┤        bad: from every state but unread and made
//      └─────────────────────────────────────┘ what was kept of it is no use: its file has to be read
//
//   deferred: its bytes are here, or were, and it is no thread's turn: the sizes of a packed batch's others are not known,
//   or a large picture finds no memory to be decoded in.
//
// Shared by the fetch tasks and decode jobs that point into it. Thread-bound(control), but for request() and stop(),
// which do not change once it runs.
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/backend/backend.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/batch_result.h"
#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/model/owner.h"
#include "daemon/model/stop_flag.h"
#include "daemon/pipeline/batch/error_policy.h"
#include "daemon/pipeline/batch/tensor_layout.h"
#include "daemon/pipeline/open_session.h"
#include "daemon/pipeline/turns/ready_samples.h"
#include "daemon/slots/slot_pool.h"
#include "proto/base/result.h"

namespace millrace {

class Batch;
class EpochRun;
using BatchPtr = std::shared_ptr<Batch>;

enum class SampleState : std::uint8_t { kUnread, kReading, kDeferred, kWaiting, kMaking, kMade, kBad };
constexpr std::size_t kSampleStates = 7;

// One sample of it, as others see it.
struct SampleRun {
  SampleState state = SampleState::kUnread;
  std::uint8_t flags = 0;          // shm::SampleFlags
  std::uint32_t tried = 0;         // backends that gave it back: bit i
  std::uint32_t backend = 0;       // that makes it, or made it
  std::optional<SlotRange> place;  // of its first view; nullopt: not laid out yet
  Bytes bytes;                     // of the pixels there, once its size is known
  std::optional<SourceInfo> source;
  SampleGeometry geometry;
  std::chrono::nanoseconds fetch{0}, queued{0}, decode{0}, transform{0};
  WhyUnpacked unpacked{};  // as the backend says that made it
  Charge encoded;          // while its encoded bytes are held
  bool from_file = false;  // it is read again, for what was kept of it is no use
  // Why it is bad; or what the backend said that gave it back, in case nobody else takes it.
  std::optional<Error> error;

  bool bad() const { return state == SampleState::kBad; }
};

class Batch {
 public:
  enum class Phase : std::uint8_t { kQueued, kRunning, kFinalizing, kFailing, kEnded };

  // Of all batches that have not ended.
  class Owner {
   public:
    virtual ~Owner() = default;
    // A failing batch is in nobody's hands any more. Called from wherever the last InFlight went: end() it soon, not
    // there.
    virtual void unused(BatchPtr batch) = 0;
    std::uint32_t under_way() const { return under_way_; }

   private:
    friend class Batch;
    std::uint32_t under_way_ = 0;
  };
  struct Surroundings {
    Owner& owner;
    Counters& counters;
    std::size_t backends = 0;
    InForce<Limits> limits;
    std::uint32_t devices = 0;  // of the backends, all but the processor's: bit i
  };

  // `epoch`: whose batch it is, with the mark after it; null: the client's own.
  Batch(std::shared_ptr<OpenSession> session, BatchRequest request, std::unique_ptr<const TensorLayout> layout,
        std::shared_ptr<EpochRun> epoch, const Surroundings& around);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  const BatchRequest& request() const { return request_; }
  const OpenSession& session() const { return *session_; }
  ReadingPace& pace() const { return session_->pace; }
  millrace::Owner owner() const { return session_->owner(); }
  const std::shared_ptr<SessionCosts>& costs() const { return session_->parts.costs; }  // shared: see SessionParts
  EpochRun* epoch() const { return epoch_.get(); }                                      // null: the client's own
  const TensorLayout& layout() const { return *layout_; }
  const std::shared_ptr<StopFlag>& stop() const { return stop_; }  // shared with fetch threads and lanes
  std::uint32_t count() const { return static_cast<std::uint32_t>(samples_.size()); }
  bool is(BatchId submitted) const { return !epoch_ && request_.id == submitted; }

  Phase phase() const { return phase_; }
  bool running() const { return phase_ == Phase::kRunning; }
  bool over() const { return phase_ == Phase::kFailing || phase_ == Phase::kEnded; }

  // It has a slot. `arena` keeps its memory until the last lane is done, whatever becomes of the session.
  void begin(const SlotLease& lease, std::shared_ptr<Arena> arena);
  void finalize(FinalSlot slot);  // what on_error makes of its samples. REQUIRES: these have finished
  void fail();                    // nothing more is begun, and what is under way is told to stop
  // The slot that was not sealed. REQUIRES: nothing is in flight; finalizing or failing.
  std::optional<SlotLease> end();

  bool in_flight() const { return in_flight_ > 0; }

  std::string name_of(std::uint32_t index) const { return source_name(request_.samples[index].source); }

  // Samples, by state. Made or given up: finished.
  const SampleRun& sample(std::uint32_t index) const { return samples_[index]; }
  std::span<const SampleRun> samples() const { return samples_; }
  std::uint32_t count(SampleState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::uint32_t finished() const { return count(SampleState::kMade) + count(SampleState::kBad); }
  std::uint32_t on_devices() const { return on_devices_; }  // of those being made
  std::uint32_t not_read() const { return count(SampleState::kUnread) + count(SampleState::kReading); }
  // Whether all samples before the lowest-numbered bad one are made, so that no other one can turn out to be it.
  bool first_bad_is_known();
  SampleFailure failure(std::uint32_t index) const;  // REQUIRES: it is bad
  std::vector<SampleFailure> failures() const;       // of all samples, in order

  // Reading. unread -> reading: at most so many, in the order in which they are wanted.
  std::vector<std::uint32_t> take_unread(std::uint32_t most);
  void put_back_unread(std::uint32_t index);  // reading -> unread: they were not read
  void note_reading(std::uint32_t index, std::chrono::nanoseconds took);
  // Its header is known: draws its boxes and, where the layout can, gives it its place; of one that is read again, looks
  // that its header says the same. An error is the sample's.
  Result<void> lay_out(std::uint32_t index, const SourceInfo& source);
  bool has_places() const { return layout_->places_each_alone() || placed_; }
  // reading -> deferred, of a batch without places. nullopt: its bytes found no room and are read again later.
  void defer(std::uint32_t index, std::optional<EncodedImage> image);
  void drop_deferred();  // their bytes: they are read again later
  // The deferred samples that the slot has no room for. REQUIRES: a packed batch, every sample has a size or is bad.
  Overflow overflow() const;
  // Every sample that is not bad gets its place, in order: deferred -> waiting with their bytes, which are returned, or
  // -> unread. REQUIRES: as overflow(), and they fit.
  std::vector<SampleTask> place_deferred();
  SampleTask wait(std::uint32_t index, EncodedImage image);  // reading -> waiting. REQUIRES: laid out

  // Making.
  void choose(std::uint32_t index, std::size_t backend);  // for one that waits
  void defer(std::uint32_t index);                        // waiting -> deferred: no memory to decode it in
  void make(std::span<const SampleTask> tasks);           // waiting, deferred -> making
  // Says in the task where a backend writes a sample that writes `memories` beside the host's: in the slot if it can,
  // else on the host, to be brought there before the seal. REQUIRES: laid out.
  void direct(SampleTask& task, std::span<const MemoryId> memories) const;
  void not_taken(std::span<const SampleTask> tasks);  // making -> waiting: the backend was full
  void note_making(std::uint32_t index, const SampleOutcome& outcome);
  void try_elsewhere(std::uint32_t index, Error why);  // making -> waiting: its backend gave it back
  void read_again(std::uint32_t index);                // making -> unread: what was kept of it is no use
  void made(std::uint32_t index);                      // making -> made

  void give_up(std::uint32_t index, Error error);  // -> bad; its bytes, if any, are let go

  // What the slot holds: the tensor's bytes, and once it has its final bytes where whose pixels are.
  const FinalSlot& slot() const { return slot_; }
  Bytes tensor() const { return slot_.tensor; }

  // The slot and its memory. REQUIRES: begun, not ended; lease(): nor sealed.
  const SlotLease& lease() const { return *lease_; }
  Arena& arena() const { return *arena_; }
  void sealed() { lease_.reset(); }

  // A stage's own, which nobody else looks at.
  struct HostShortage {  // the daemon lacks what it takes to read: since when, and when it tries again
    std::chrono::steady_clock::time_point since;
    std::chrono::milliseconds pause;
    bool pausing = false;
  };
  struct ReadingNotes {
    bool queued = false;
    std::optional<HostShortage> want;                  // what the daemon lacked when it last tried to read
    std::uint32_t stuck = 0;                           // of its tasks, those that may never come back
    SessionState waits_for = SessionState::kReadTurn;  // why no task was given to it when last asked
    std::optional<boost::asio::steady_timer> later;
  } reading;
  std::vector<ReadySamples> ready;                    // making's: for each backend
  std::optional<boost::asio::steady_timer> deadline;  // waiting's
  const std::chrono::steady_clock::time_point admitted = std::chrono::steady_clock::now();
  Charge queued;  // waiting's, as long as it has no slot
  Charge room;    // for what is kept of its request, as long as it is there. Empty: the epoch's is for it

 private:
  friend class InFlight;

  void enter(Phase phase);
  void enter(std::uint32_t index, SampleState state);
  void hold(std::uint32_t index, const EncodedImage& image);

  const std::shared_ptr<OpenSession> session_;  // shared: see OpenSession
  const BatchRequest request_;
  const std::unique_ptr<const TensorLayout> layout_;
  const std::shared_ptr<EpochRun> epoch_;  // shared with its session's other batches
  const Surroundings around_;

  Phase phase_ = Phase::kQueued;
  const std::shared_ptr<StopFlag> stop_ = std::make_shared<StopFlag>();  // see stop()
  std::uint32_t in_flight_ = 0;                                          // InFlight tokens
  std::optional<SlotLease> lease_;
  std::shared_ptr<Arena> arena_;  // shared: see begin()

  std::vector<SampleRun> samples_;
  std::array<std::uint32_t, kSampleStates> counts_{};
  std::uint32_t on_devices_ = 0;
  std::uint32_t next_unread_ = 0;                      // first sample that never was anything but unread
  std::vector<std::uint32_t> unread_again_;            // whose first bytes were of no use
  std::uint32_t made_in_order_ = 0;                    // the first ones, up to one that is not made
  bool placed_ = false;                                // packed: all that have a size have their place
  std::vector<std::optional<EncodedImage>> deferred_;  // packed: fetched and waiting for the others' sizes
  FinalSlot slot_;
};

// The right to call back about a batch: while there is one, the batch's slot is nobody else's. It goes on whatever path,
// and with the last one a failing batch ends. Thread-bound(control).
class InFlight {
 public:
  explicit InFlight(BatchPtr batch) : batch_(std::move(batch)) { ++batch_->in_flight_; }
  ~InFlight() { let_go(); }
  InFlight(InFlight&&) noexcept = default;
  InFlight& operator=(InFlight&& other) noexcept {
    std::swap(batch_, other.batch_);
    return *this;
  }

  const BatchPtr& batch() const { return batch_; }

 private:
  void let_go();

  BatchPtr batch_;  // null: moved from
};

}  // namespace millrace
