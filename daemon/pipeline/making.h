// Stages 4 and 5 as the pipeline drives them: samples wait for a backend, go to it in jobs, and come back made, broken,
// or to be tried elsewhere.
//
//   add() ──▶ ready at a backend ──▶ lanes ──▶ made or bad ──▶ Next::came_back()
//               ▲     └─ its device is lost, or it cannot ──▶ ready at another
//
// Whose turn it is, and what waits for memory or is too late, the lane scheduler says (turns/lane_scheduler.h).
//
// A batch that fails gets what waits here back through the same door, as if a backend had given it back.
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/backend/backend.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/slow_images.h"
#include "daemon/pipeline/named_backend.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/pipeline/turns/lane_scheduler.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "daemon/place/placer.h"

namespace millrace {

class Making {
 public:
  class Next {
   public:
    virtual ~Next() = default;
    // Some of its samples may have finished: does it end?
    virtual void came_back(const BatchPtr& batch) = 0;
    virtual void moved(const Batch& batch) = 0;            // samples of it are in other states
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
  std::vector<TensorMemory*> memories() const;                       // the devices'
  std::uint32_t devices() const { return devices_; }                 // of the backends, all but the processor's: bit i
  std::chrono::nanoseconds lane_time() const { return lane_time_; }  // of CPU lanes, for all sessions so far
  bool lost(std::size_t index) const { return placer_.lost(index).has_value(); }

  // See LaneScheduler.
  std::chrono::milliseconds overdue(std::chrono::milliseconds image_limit) const {
    return scheduler_.overdue(image_limit);
  }

  // Samples of a batch that can be made: each waits for the backend that the placer chooses, or is given up.
  void add(const BatchPtr& batch, std::vector<SampleTask> tasks);

  // The user has no session any more: what was learnt of his images goes.
  void left(UserId user) { scheduler_.left(user); }

  // Nobody wants the batch any more: its large pictures do not wait for others' memory.
  void drop(const BatchPtr& batch);

 private:
  struct BackendRun {
    std::unique_ptr<Backend> backend;
    std::vector<MemoryId> memories;  // BackendInfo's
    LabelValue label{};              // of what it has made
    LabelValue left{};               // of what it left to others
  };

  void feed(std::size_t index);
  void feed_deferred();
  bool give(LaneScheduler::Turn next);
  bool submit(LaneScheduler::Turn next);
  void give_back(LaneScheduler::Turn next);
  void health_changed(std::size_t index, const Health& health);
  void made(std::size_t index, std::uint32_t number, std::vector<SampleTask> tasks, std::vector<SampleOutcome> outcomes,
            const JobUse& use);
  void note_use(const Batch& batch, std::size_t index, std::span<const SampleOutcome> outcomes, const JobUse& use);
  void note_outcome(Batch& batch, SampleTask task, const SampleOutcome& outcome, std::vector<SampleTask>& again);

  boost::asio::io_context& control_;
  ControlTime& time_;
  SlowImages& slow_;
  Counters& counters_;
  Next& next_;
  std::vector<BackendRun> backends_;
  std::vector<std::string> names_;
  std::uint32_t devices_ = 0;
  std::chrono::nanoseconds lane_time_{0};
  Placer placer_;
  LaneScheduler scheduler_;
};

}  // namespace millrace
