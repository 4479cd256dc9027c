// Stage 3 as the pipeline drives it: which samples are read next, and what becomes of their bytes.
//
//   begin() ──▶ wants reading ──▶ fetch threads ──▶ read ──▶ Next::read(): can be made
//                    ▲ ▲              │   │         └──▶ bad, or deferred until a packed batch's sizes are all known
//                    │ └── not begun ─┘   │
//                    └── pause ◀── the daemon lacks descriptors or memory; too long: Next::fail()
//
// Time of the fetch threads is shared (fair_queue.h): a task is charged as expected when it is given, and what it took
// is known when it comes back. What the control thread has done for a user meanwhile (control_time.h) is charged with
// it. At most kFetchTasks are at the fetcher, beside those that are stuck. While the budget of encoded bytes is used up, nothing is read but
// headers that packed batches need. Sessions that read slowly (reading_pace.h) never have all of the fetcher's
// threads, and one user's not more than half of these where others have sessions: they delay nobody else. A task whose
// thread has been at one file for kStuck is stuck: it may never come back, and the fetcher has a stand-in (relieve()).
// Stuck tasks make their sessions slow ones; those beyond kMostStandIns count among what slow sessions may have, of
// which a user with nothing at the fetcher has one in any case.
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/fetch/fetcher.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/slow_images.h"
#include "daemon/pipeline/epoch/outstanding.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/pipeline/turns/fair_queue.h"
#include "daemon/pipeline/turns/user_reads.h"
#include "daemon/pipeline/turns/user_shares.h"

namespace millrace {

class Reading {
 public:
  static constexpr std::uint32_t kNoBound = ~0U;

  class Next {
   public:
    virtual ~Next() = default;
    virtual void read(const BatchPtr& batch, std::vector<SampleTask> tasks) = 0;  // they can be made
    virtual void came_back(const BatchPtr& batch) = 0;  // some of its samples may have finished
    virtual void moved(const Batch& batch) = 0;         // samples of it are in other states, or wait for something else
    // The batch cannot be had. `would_fit`: the slot bytes with which it could, if it is for want of them.
    virtual void fail(const BatchPtr& batch, Error why, Bytes would_fit = {}) = 0;
  };
  struct Options {
    std::chrono::milliseconds host_patience;  // see Pipeline::Options
    InForce<Limits> limits;
    std::uint64_t cache_seed = 0;         // see Pipeline::Options
    std::uint32_t slow_tasks = kNoBound;  // the same
  };

  // `ledger`: of the sessions' accounts, to which encoded bytes are charged. Everything outlives it.
  Reading(boost::asio::io_context& control, Fetcher& fetcher, const Ledger& ledger, const UserShares& shares,
          ControlTime& time, SlowImages& slow, Counters& counters, const Options& options, Next& next);

  void begin(const BatchPtr& batch) { queue(batch); }  // it runs; feed() then begins with it when it is its turn
  // Gives the fetcher what there is room for: after begin(), and whenever encoded bytes were let go.
  void feed();

  // For how long no task has come back from the fetch threads; 0: they have none.
  std::chrono::milliseconds still_for() const { return tasks_.still_for(); }
  void left(UserId user);  // he has no session any more: what was learnt of his files goes

 private:
  // What the control thread holds for a task that the fetcher has.
  struct TaskOut {
    InFlight batch;
    std::uint64_t expected = 0;  // nanoseconds of a thread, of any files
    bool slow = false;           // bounded as one of a session that reads slowly
    std::shared_ptr<FetchWatch> watch{};
    bool stuck = false;    // a thread has been at one item for kStuck, when last looked at
    bool is_here = false;  // the control thread reads it, whose time is charged in any case
    TurnCharge turn{};     // of this user's files
  };

  std::optional<BatchPtr> take_next();
  const UserReads& reads_of(UserId user) const;
  bool may_be_read(const BatchPtr& batch);
  bool has_to_wait(const Batch& batch) const;
  bool has_all_of_his(const Batch& batch) const;
  bool keeps_his_turn(const Batch& batch) const;
  std::uint32_t stuck_of(UserId user) const;
  bool reads_slowly(const Batch& batch) const;
  bool is_bounded(const Batch& batch) const;
  void look_after_tasks();
  void look_for_stuck_tasks();
  bool has_room(const Batch& batch) const;
  std::uint32_t tasks_of(UserId user) const;
  bool overfills(const Batch& batch) const;
  [[nodiscard]] bool give(const BatchPtr& batch);
  void given(Batch& batch);
  FetchTask task_of(const BatchPtr& batch);
  CacheWish wish_of(const Batch& batch, const SampleRequest& sample) const;
  void queue(const BatchPtr& batch);
  void put_back(const BatchPtr& batch);
  void fetched(std::uint32_t number, std::vector<Fetched> items);
  void charge_what_it_took(const TaskOut& out, const std::vector<Fetched>& items);
  void take_all(const BatchPtr& batch, std::vector<Fetched> items);
  std::optional<SampleTask> take(Batch& batch, Fetched item);
  [[nodiscard]] bool place_packed(const BatchPtr& batch, std::vector<SampleTask>& ready);
  void pause(const BatchPtr& batch, const Error& lacking);
  void break_off(const BatchPtr& batch, const Error& missing);

  boost::asio::io_context& control_;
  Fetcher& fetcher_;
  const Ledger& ledger_;
  const UserShares& shares_;
  ControlTime& time_;
  SlowImages& slow_;
  Counters& counters_;
  Options options_;
  const std::uint32_t most_slow_;  // tasks of sessions that read slowly
  Next& next_;
  FairQueue<BatchPtr> batches_;  // that have unread samples
  Outstanding<TaskOut> tasks_;
  std::unordered_map<UserId, UserReads> reads_;  // of users that have sessions
  std::uint32_t stuck_ = 0;                      // of the tasks
  bool is_looked_after_ = false;                 // the timer runs
  boost::asio::steady_timer look_;
  SeldomLine pause_line_;
  SeldomLineByUser stuck_line_;
};

}  // namespace millrace
