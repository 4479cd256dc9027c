// Which samples a backend's lanes get next: the one place where turns on the lanes are decided, for all backends.
//
//   add() ──▶ ready ──next()──▶ Turn ──begin()──▶ at the backend ──ended()──▶ what it took is charged
//               │ ▲               │  └─not_taken()─▶ ready or deferred, as before
//               │ └───────────────┘ what one job does not hold
//               └──no memory──▶ deferred ──next_deferred()──▶ Turn
//
// Lane time is shared (fair_queue.h): a job is charged as expected when a backend has taken it, and what it did take is
// known when it comes back, whatever became of its samples. A lane that a job holds for long is lost to others
// meanwhile: where other users have sessions, one user's long jobs are on half of the lanes at most, and all long jobs
// together leave a lane free, if there are two. A small batch of priority high goes first and has a place of its own. A
// large picture waits for memory (large_pictures.h). A batch that is too late, or will be, is given up when its turn
// comes.
//
// Thread-bound(control).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/backend/backend.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/epoch/outstanding.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/pipeline/turns/fair_queue.h"
#include "daemon/pipeline/turns/large_pictures.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "daemon/place/cost_ratio.h"
#include "daemon/place/placer.h"

namespace millrace {

class LaneScheduler {
 public:
  // What a lane has at once of one user before it is somebody else's turn, but for a single image.
  static constexpr std::chrono::milliseconds kTurn{100};

  // A batch's turn at a backend. What is to be made: begin(), the backend is asked, taken() or not_taken(), and ended()
  // when the job comes back. What is not: begin(), and ended() with an outcome for each sample.
  struct Turn {
    InFlight batch;
    std::size_t backend;
    std::vector<SampleTask> tasks;  // for one job: at least one, or what was ready of a batch that is not to be made
    bool is_to_be_made = true;      // false: the batch has ended or is late, or the device is lost
    std::optional<Error> late{};    // the batch cannot be had in time
    bool urgent = false;
    bool had_to_wait = false;  // a picture that had been deferred
    Charge decoding{};         // of memory
    Bytes beside{};            // of a deferred picture: LargePictures::Deferred's
  };

  // `placer`: which devices are lost. `ledger`: of the sessions' accounts, to which large pictures are charged. All
  // outlive it.
  LaneScheduler(const Placer& placer, const Ledger& ledger, const UserShares& shares, ControlTime& time)
      : placer_(placer), shares_(shares), time_(time), large_(ledger, shares) {}

  // Backends have numbers from 0 on, in the order of these calls. `copies_files`: BackendInfo's.
  void add_backend(const QueueDepth& queue_depth, bool copies_files);

  // kExhausted: making it surely takes more memory than all lanes together may have.
  Result<void> check(const SampleTask& task) const { return large_.check(task); }
  // The sample waits for the backend. REQUIRES: check().
  void add(std::size_t backend, const BatchPtr& batch, SampleTask task);

  // Whose turn it is at the backend, where it has room; nullopt: nobody's. Of a lost device: all that waits for it.
  std::optional<Turn> next(std::size_t backend);
  // The same of deferred pictures, at any backend.
  std::optional<Turn> next_deferred();
  // The batches of pictures that next() has deferred since this was last called.
  std::vector<BatchPtr> take_newly_deferred() { return std::exchange(newly_deferred_, {}); }

  // The job's number until ended(). Counts as one that the backend has.
  std::uint32_t begin(const Turn& turn);
  void taken(std::uint32_t number, Turn turn);                                     // by the backend
  void not_taken(std::uint32_t number, Turn turn, std::vector<SampleTask> tasks);  // which wait as before

  // The job has come back: what it took is charged, and its memory is free.
  BatchPtr ended(std::size_t backend, std::uint32_t number, std::span<const SampleOutcome> outcomes);

  // The batch's deferred pictures, which need not wait for others' memory.
  std::vector<Turn> drop(const BatchPtr& batch);
  // The user has no session any more: what was learnt of his images goes.
  void left(UserId user);

  std::size_t jobs(std::size_t backend) const { return lanes_[backend].jobs.size(); }  // that it has

  // The longest that a backend has given nothing back which has jobs, beyond what a job of its may take when every image
  // in it takes the limit's time; 0: none has.
  std::chrono::milliseconds overdue(std::chrono::milliseconds image_limit) const;

 private:
  // What the control thread holds for a job that a backend has.
  struct JobOut {
    InFlight batch;
    Charge decoding;
    bool had_to_wait = false;
    std::uint64_t expected = 0;  // nanoseconds of a lane, as its formats tell; 0: no backend gets it
    bool is_long = false;
    TurnCharge turn{};        // as its user's other images make likely
    TurnCharge large_turn{};  // the same, where it had to wait
  };
  // Of a user's images at one backend.
  struct Learnt {
    CostRatio ratio;
    bool has_come_back = true;  // a job of his, since a batch of his was last given up by what was expected of it
  };
  // The lanes of one backend.
  struct Lanes {
    QueueDepth queue_depth;
    bool copies_files;
    FairQueue<InFlight> ready;  // batches of which some samples are ready for it
    Outstanding<JobOut> jobs{};
    std::unordered_map<UserId, Learnt> learnt{};  // of users that have sessions
  };

  bool has_room(const Lanes& lanes) const;
  bool has_lane_for(const Lanes& lanes, UserId user, std::uint64_t expected) const;
  const CostRatio& ratio_of(const Lanes& lanes, UserId user) const;
  std::uint64_t charge_of(const Lanes& lanes, const Batch& batch, std::uint64_t expected) const;
  std::optional<InFlight> take_first(std::size_t backend);
  std::optional<Error> why_late(Lanes& lanes, const Batch& batch, const ReadySamples& ready);
  void compose(Turn& turn);
  void put_back(Turn turn);
  const LargePictures::Deferred* due_deferred();
  bool is_unwanted(const LargePictures::Deferred& picture) const;
  static Turn of(LargePictures::Deferred picture);
  static Turn unwanted(LargePictures::Deferred picture);
  void charge_control_time();
  void charge_what_it_took(Lanes& lanes, const JobOut& out, std::span<const SampleOutcome> outcomes);

  const Placer& placer_;
  const UserShares& shares_;
  ControlTime& time_;
  LargePictures large_;
  std::vector<Lanes> lanes_;  // by backend
  std::vector<BatchPtr> newly_deferred_;
};

}  // namespace millrace
