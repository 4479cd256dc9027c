// The pipeline's inside: what it holds and the verbs that move a batch on, a file each group. Thread-bound(control).
//
//   admitting.cc   begin(): a waiting batch, or an epoch's next one, gets a slot
//   fetching.cc    feed_fetch() ──▶ fetch threads ──▶ fetched()
//   making.cc      enqueue_ready() ──▶ feed_backend() ──▶ lanes ──▶ made()
//   large_pictures.cc   memory for decoding: charged before a job is given to a lane; who has to wait for it
//   ending.cc      settle() ──▶ mend ──▶ the arena ──▶ settled() ──▶ complete(), or fail()
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/pipeline/batch_run.h"
#include "daemon/pipeline/epoch_run.h"
#include "daemon/pipeline/fair_queue.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/place/placer.h"

namespace millrace {

using BatchPtr = std::shared_ptr<BatchRun>;  // shared: see BatchRun

enum class PlannedEpoch : std::uint8_t { kWanted, kStopped };

struct SessionRun {
  SessionParts parts;
  std::deque<BatchPtr> waiting;                    // submitted, without a slot
  std::vector<BatchPtr> active;                    // with a slot
  std::vector<std::unique_ptr<EpochRun>> epochs;   // taking turns
  std::map<EpochStreamId, PlannedEpoch> planning;  // being shuffled
};

struct Pipeline::State {
  State(boost::asio::io_context& control_, Fetcher& fetcher_, std::vector<NamedBackend> backends_, Counters& counters_,
        Options options_);

  // What a decode job was charged to options.decoding.
  struct Charge {
    Bytes bytes;
    bool had_to_wait = false;
  };
  // A large picture for which there was no room.
  struct SetAside {
    BatchPtr batch;
    std::size_t backend;
    SampleTask task;
    Bytes bytes;
  };

  struct BackendRun {
    std::string name;
    std::unique_ptr<Backend> backend;
    std::vector<MemoryId> memories;  // BackendInfo's
    FairQueue<BatchPtr> ready;       // whose ReadySamples for it are not empty
    std::uint32_t in_it = 0;         // decode jobs
    std::uint32_t waited = 0;        // of these, pictures that had been set aside
  };

  // admitting.cc
  Result<void> admit(SessionId session, BatchRequest request);
  Result<BatchPtr> new_batch(SessionId session, const SessionParts& parts, BatchRequest request);
  void slots_changed(SessionId session);
  void begin_waiting(SessionId session);
  BatchPtr next_to_begin(SessionId session, SessionRun& run);
  void begin(SessionRun& run, const BatchPtr& batch);
  void watch_deadline(const BatchPtr& batch);
  void start_epoch(SessionId session, EpochRequest request);
  void epoch_planned(SessionId session, EpochRequest request, Result<EpochOrder> order);
  void retire_epochs(SessionId session);

  // fetching.cc
  void feed_fetch();
  FetchTask fetch_task(const BatchPtr& batch, SessionRun& run);
  void fetched(const BatchPtr& batch, std::vector<Fetched> items);
  void take_all_fetched(const BatchPtr& batch, std::vector<Fetched> items);
  std::optional<SampleTask> take_fetched(BatchRun& batch, Fetched item);
  Result<void> place_fetched(BatchRun& batch, const Fetched& item);
  Result<void> place_packed(BatchRun& batch, std::vector<SampleTask>& ready);
  void queue_for_fetch(const BatchPtr& batch);
  void wait_for_host(const BatchPtr& batch, const Error& lacking);
  void break_off_epoch(const BatchPtr& batch, const Error& missing);
  void drop_kept(BatchRun& batch);
  void forget_encoded(const EncodedImage& image);

  // making.cc
  void enqueue_ready(const BatchPtr& batch, std::vector<SampleTask> tasks);
  void feed_backend(std::size_t index);
  std::vector<SampleTask> take_ready(std::size_t index, const BatchPtr& batch, Charge& charge);
  DecodeJob decode_job(std::size_t index, const BatchPtr& batch, std::vector<SampleTask> tasks, Charge charge);
  Destination destination(std::size_t index, const BatchRun& batch, std::uint32_t sample) const;
  void give_back(std::size_t index, const BatchPtr& batch, std::vector<SampleTask> tasks);
  void made(std::size_t index, const BatchPtr& batch, Charge charge, std::vector<SampleTask> tasks,
            std::vector<SampleOutcome> outcomes);
  void note_outcome(BatchRun& batch, std::size_t backend, SampleTask task, const SampleOutcome& outcome,
                    std::vector<SampleTask>& again);

  // large_pictures.cc
  Result<void> check_decoding(const SampleTask& task) const;
  Bytes decoding_charge(const SampleTask& task) const;
  bool charge_decoding(Bytes bytes);
  void refund_decoding(Bytes bytes);
  void set_aside(const BatchPtr& batch, std::size_t backend, SampleTask task);
  void feed_set_aside();
  void drop_set_aside(const BatchPtr& batch);

  // ending.cc
  void settle(const BatchPtr& batch);
  void give_up(BatchRun& batch, std::uint32_t index, Error error);
  void settled(const BatchPtr& batch, const Result<void>& result);
  void complete(const BatchPtr& batch);
  void fail(const BatchPtr& batch, Error error);
  void end(const BatchPtr& batch);
  void hand_over(const BatchPtr& batch, std::variant<CompletedBatch, FailedBatch> result);
  void check_idle();

  // Tells of an image that took longer than options.slow.
  void note_time(const BatchRun& batch, std::uint32_t index, std::string_view verb, std::chrono::microseconds took);

  SessionRun* find(SessionId session);
  std::uint32_t portion(const BatchRun& batch) const;
  // Runs `step` on the control thread.
  template <class Step>
  void post(Step&& step) {
    boost::asio::post(control, std::forward<Step>(step));
  }

  boost::asio::io_context& control;
  Fetcher& fetcher;
  Counters& counters;
  const Options options;
  std::vector<BackendRun> backends;
  std::vector<std::string> backend_names;
  Placer placer;
  std::uint32_t lanes = 1;  // of all backends

  std::unordered_map<std::uint64_t, SessionRun> sessions;
  FairQueue<BatchPtr> to_fetch;
  std::uint32_t fetch_tasks = 0;   // at the fetcher
  std::uint32_t packed_tasks = 0;  // of these, whole packed batches
  Bytes encoded_in_flight;
  Bytes decoding_in_use;
  FairQueue<SetAside> waiting_for_memory;
  std::optional<SetAside> next_large;  // whose turn it is, however long it takes: smaller ones do not go before it
  SeldomLine want_line, slow_line;
  std::uint32_t unended = 0;  // batches begun or waiting, of every session
  bool draining = false;
  std::function<void()> idle;
  boost::asio::thread_pool planner{1};  // shuffles epochs of millions of samples beside the control thread
};

}  // namespace millrace
