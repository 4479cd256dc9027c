// Stages 4 and 5 as the pipeline drives them: samples wait for a backend, go to it in jobs, and come back made, broken,
// or to be tried elsewhere.
//
//   add() ──▶ ready at a backend ──▶ lanes ──▶ made or bad ──▶ Next::came_back()
//               ▲     │    └─ its device is lost, or it cannot ──▶ ready at another
//               │     ▼
//            deferred, while a large picture finds no memory (large_pictures.h)
//
// Lane time is shared (fair_queue.h): a job is charged as expected when a backend has taken it, and what it did take is
// known when it comes back, whatever became of its samples. A lane that a job holds for long is no use to others
// meanwhile: where other users have sessions, one user's long jobs are on half of the lanes at most, and all long jobs
// together leave a lane free, if there are two.
//
// A batch that fails gets what waits here back through the same door, as if a backend had given it back.
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/backend/backend.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/slow_images.h"
#include "daemon/pipeline/epoch/given_out.h"
#include "daemon/pipeline/named_backend.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/pipeline/turns/fair_queue.h"
#include "daemon/pipeline/turns/large_pictures.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "daemon/place/cost_ratio.h"
#include "daemon/place/placer.h"

namespace millrace {

class Making {
 public:
  class Next {
   public:
    virtual ~Next() = default;
    // Some of its samples may have finished: does it end?
    virtual void came_back(const BatchPtr& batch) = 0;
    virtual void must_be_read(const BatchPtr& batch) = 0;  // it has unread samples again
    virtual void bytes_let_go() = 0;                       // of encoded images: more can be read
    virtual void fail(const BatchPtr& batch, Error why, Bytes would_fit = {}) = 0;  // it cannot be had in time
  };

  // `ledger`: of the sessions' accounts, to which large pictures are charged. Everything outlives it.
  Making(boost::asio::io_context& control, std::vector<NamedBackend> backends, const Ledger& ledger,
         const UserShares& shares, ControlTime& time, SlowImages& slow, Counters& counters, Next& next);
  ~Making();  // shuts the backends down

  const Placer& placer() const { return placer_; }
  std::vector<BackendInfo> infos() const;
  std::vector<TensorMemory*> memories() const;  // the devices'
  bool lost(std::size_t index) const { return placer_.lost(index).has_value(); }

  // The longest that a backend has given nothing back which has jobs, beyond what a job of its may take when every image
  // in it takes the limit's time; 0: none has.
  std::chrono::milliseconds overdue(std::chrono::milliseconds image_limit) const;

  // Samples of a batch that can be made: each waits for the backend that the placer chooses, or is given up.
  void add(const BatchPtr& batch, std::vector<SampleTask> tasks);

  // The user has no session any more: what was learnt of his images goes.
  void left(UserId user);

  // Nobody wants the batch any more: its large pictures do not wait for others' memory.
  void drop(const BatchPtr& batch);

 private:
  // What the control thread holds for a job that a backend has.
  struct JobOut {
    InFlight batch;
    Charge decoding;
    bool had_to_wait = false;    // a picture that had been deferred
    std::uint64_t expected = 0;  // nanoseconds of a lane, as its formats tell
    bool is_long = false;
    TurnCharge turn{};        // as its user's other images make likely
    TurnCharge large_turn{};  // the same, where it had to wait
  };
  // Of a user's images at one backend.
  struct Learnt {
    CostRatio ratio;
    bool has_come_back = true;  // a job of his, since a batch of his was last given up by what was expected of it
  };
  struct BackendRun {
    std::unique_ptr<Backend> backend;
    std::vector<MemoryId> memories;  // BackendInfo's
    bool copies_files = false;       // the same
    QueueDepth queue_depth;
    LabelValue label{};         // of what it has made
    FairQueue<InFlight> ready;  // batches of which some samples are ready for it
    GivenOut<JobOut> jobs;
    std::unordered_map<UserId, Learnt> learnt;  // of users that have sessions
  };

  void feed(std::size_t index);
  void charge_control_time();
  void shed_if_late(BackendRun& run, const BatchPtr& batch, const ReadySamples& ready);
  const CostRatio& ratio_of(const BackendRun& run, UserId user) const;
  bool has_lane_for(const BackendRun& run, UserId user, std::uint64_t expected) const;
  std::vector<SampleTask> take_ready(std::size_t index, const BatchPtr& batch, Charge& charge);
  bool submit(std::size_t index, JobOut& out, std::vector<SampleTask>& tasks);
  void charge_what_it_took(BackendRun& run, const JobOut& out, const std::vector<SampleOutcome>& outcomes);
  void give_back(std::size_t index, InFlight batch, std::vector<SampleTask> tasks);
  void health_changed(std::size_t index, const Health& health);
  void made(std::size_t index, std::uint32_t number, std::vector<SampleTask> tasks,
            std::vector<SampleOutcome> outcomes);
  void note_outcome(Batch& batch, SampleTask task, const SampleOutcome& outcome, std::vector<SampleTask>& again);
  const LargePictures::Deferred* next_deferred();
  void feed_deferred();
  void drop(LargePictures::Deferred picture);

  boost::asio::io_context& control_;
  const UserShares& shares_;
  ControlTime& time_;
  SlowImages& slow_;
  Counters& counters_;
  Next& next_;
  LargePictures large_;
  std::vector<BackendRun> backends_;
  std::vector<std::string> names_;
  Placer placer_;
};

}  // namespace millrace
