// Runs batches through the stages: four objects, each with its own state, and this one, which sends a batch from one to
// the next and has the sessions and what the stages share. daemon/doc/life_of_a_batch.md follows one batch through here.
//
//   waiting ──a slot is free──▶ reading ──samples──▶ making ──all are back──▶ finalizing ──▶ handed over
//      └───────────────────────────┴──────────────────┴── fail() ─────────────▶─┘
//
// fail(): a bad sample where on_error says so, cancel, deadline, the session closes, the daemon lacks what reading
// takes. The client is told at once; the slot comes back when the last fetch task and the last lane have called back.
// What phases a batch has, and what states its samples, is drawn in batch.h.
//
// All state lives on the control thread; fetch threads and lanes post their results to it.
// Thread-bound(control): every call, and every call of a BatchSink, is made on the io_context's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/memory/tensor_memory.h"
#include "daemon/model/backend_info.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/epoch.h"
#include "daemon/model/fair_weights.h"
#include "daemon/model/files/dataset_use.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/batch/order_charges.h"
#include "daemon/pipeline/batch/slow_images.h"
#include "daemon/pipeline/epoch/epoch_planner.h"
#include "daemon/pipeline/finalizing.h"
#include "daemon/pipeline/making.h"
#include "daemon/pipeline/named_backend.h"
#include "daemon/pipeline/open_session.h"
#include "daemon/pipeline/reading.h"
#include "daemon/pipeline/turns/control_time.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "daemon/pipeline/waiting.h"
#include "proto/base/result.h"

namespace millrace {

class Pipeline final : private Waiting::Next, private Reading::Next, private Making::Next, private Finalizing::Next {
 public:
  struct Options {
    InForce<Limits> limits;  // for what is submitted from then on, and for reading and making what was before
    // A batch whose samples cannot be read because the daemon lacks descriptors or memory fails after so long.
    std::chrono::milliseconds host_patience{10'000};
    std::chrono::milliseconds slow{0};  // an image that takes longer to read or to make is told of; 0: none
    std::uint64_t cache_seed = 0;       // of the numbers that tensors are kept by (plan/tensor_digest.h)
    std::uint32_t slow_reads = ~0U;     // fetch threads that sessions which read slowly may have together
    DatasetUses* uses = nullptr;        // told of epochs; outlives it. Null: nobody wants to know
    FairWeights weights;                // until set_weights()
    ControlTime::Now control_clock = &ControlTime::Clock::now;  // for tests
  };

  // `ledger`: of the sessions' accounts. Of encoded bytes and memory for decoding full is a state: reading pauses, large
  // pictures wait. Everything outlives it; ledger and counters every batch, too.
  Pipeline(boost::asio::io_context& control, Fetcher& fetcher, std::vector<NamedBackend> backends, const Ledger& ledger,
           Counters& counters, Options options);

  void open_session(SessionId session, SessionParts parts);

  // Queues a batch; it begins when a slot is free. kInvalid naming the field, kExhausted (too many waiting), kNotFound
  // (pinned backend), kUnavailable (draining), kPrecondition (the session is closed): then nothing is queued and nothing comes through the sink.
  // `room`: what is kept of the request is charged with it; kept until the batch has ended.
  Result<void> submit(SessionId session, BatchRequest request, Charge room = {});
  // Slot bytes without which submit() refuses such a batch; 0 for a recipe that it refuses anyway.
  Bytes slot_bytes_for(std::shared_ptr<const Recipe> recipe, std::uint32_t samples) const;
  // kInvalid: no batch of it could be made.
  Result<void> check(std::shared_ptr<const Recipe> recipe) const;
  void cancel(SessionId session, BatchId batch);  // unknown: nothing happens

  // Gives a slot back and begins what waits for one. kPrecondition: a stale handle.
  Result<void> release(SessionId session, std::uint32_t slot_untrusted, std::uint64_t generation_untrusted);

  // Whether some dataset of the session is being listed, for its time by state.
  void lists(SessionId session, bool some);

  // Slots of the session have become ready: what waits for one begins. Or none ever will: what waits fails.
  void slots_changed(SessionId session);

  // Begins to push an epoch; errors and results come through the sink.
  void start_epoch(SessionId session, EpochRequest request);
  // The next ones of an epoch whose order its client says; an error, or what is wrong with them, ends it. Nothing happens
  // if there is no such epoch, for it may just have ended.
  void give_batches(SessionId session, EpochStreamId stream, Result<GivenBatches> batches_untrusted);
  void stop_epoch(SessionId session, EpochStreamId stream);  // epoch_ended follows once its batches have ended

  // Forgets the session: what has not begun does not begin, nothing reaches its sink any more. Its memory is let go
  // when the last lane that writes to it is done.
  void close_session(SessionId session);

  // In which everybody says for whom he works on the control thread; outlives every session.
  ControlTime& control_time() { return time_; }

  // The users' weights from here on, for sessions that are open and those that come.
  void set_weights(FairWeights weights) { shares_.set_weights(std::move(weights)); }

  const UserShares& shares() const { return shares_; }

  // No new batches from here on, and those that wait fail: with `why`. `idle` is called once none is under way (at once if
  // so), unless resume() comes first.
  void drain(Error why, std::function<void()> idle);
  void resume();  // after drain(): batches are taken again. Idempotent
  std::size_t under_way() const { return finalizing_.under_way(); }  // batches that are admitted and have not ended

  // What Options::slow says from here on. Limits are put in force on the control thread, and before this, which
  // remembers the longest time for stillness().
  void settings_changed(std::chrono::milliseconds slow);

  // Whether the work goes on. `reading`: for how long no fetch task has come back, which is up to the file systems of the
  // roots. `making`: for how long no job has come back that should have, by limits.time_milliseconds, which can only be
  // the daemon's own fault. 0: all is well, or there is nothing to do.
  struct Stillness {
    std::chrono::milliseconds reading{0}, making{0};
  };
  Stillness stillness() const;

  // What a recording has to know that begins now (observe/trace): in which states sessions and batches are.
  void record_all() const;

  std::vector<BackendInfo> backends() const { return making_.infos(); }
  // In which sessions may have tensors, beside the host's. They are there as long as the pipeline.
  std::vector<TensorMemory*> memories() const { return making_.memories(); }
  bool backend_lost(std::size_t index) const { return making_.lost(index); }
  std::chrono::nanoseconds lane_time() const { return making_.lane_time(); }  // of CPU lanes, for all sessions so far

 private:
  struct SessionRun {
    std::shared_ptr<OpenSession> session;  // shared with its batches
    Waiting waiting;
    std::vector<BatchPtr> active;  // with a slot, the oldest first
    bool lists = false;            // a dataset
  };

  // The stages' ways on.
  void read(const BatchPtr& batch, std::vector<SampleTask> tasks) override { making_.add(batch, std::move(tasks)); }
  void came_back(const BatchPtr& batch) override { finalizing_.finalize(batch); }
  void moved(const Batch& batch) override;
  void must_be_read(const BatchPtr& batch) override { reading_.begin(batch); }
  void bytes_let_go() override { reading_.feed(); }
  void fail(const BatchPtr& batch, Error why, Bytes would_fit = {}) override {
    finalizing_.fail(batch, std::move(why), would_fit);
  }
  void dropped(const BatchPtr& batch) override {
    making_.drop(batch);
    moved(*batch);
  }
  void ended(const BatchPtr& batch) override;

  SessionRun* find(SessionId id);
  static void look(const SessionRun& run);
  static void enter(const OpenSession& session, SessionState state);
  void look(SessionId id);
  void begin_waiting(SessionId id);
  void epoch_planned(SessionId id, EpochRequest request, EpochPlanner::Planned planned);
  void retire_epochs(SessionId id);
  void check_idle();

  Counters& counters_;
  Options options_;
  std::chrono::milliseconds longest_image_limit_{
      options_.limits.now().sample.time};  // a job may have begun under an older one
  const std::vector<std::string> names_;   // of the backends
  UserShares shares_;
  ControlTime time_;
  SlowImages slow_;
  EpochPlanner planner_;
  Finalizing finalizing_;  // outlives those that hold batches
  Making making_;
  Reading reading_;
  Batch::Surroundings batches_;
  OrderCharges orders_;
  const Waiting::Surroundings around_sessions_;
  std::unordered_map<SessionId, SessionRun> sessions_;
  std::optional<Error> draining_;  // set: why nothing new is taken
  std::function<void()> idle_;
};

}  // namespace millrace
