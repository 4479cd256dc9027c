// A whole pipeline in one process: real files, real fetch threads, real backends, real shared memory, without gRPC. The
// test's thread posts calls to the control thread and waits for results. Thread-bound(the test).
#pragma once

#include <unistd.h>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <future>
#include <string>
#include <thread>

#include "daemon/admit/ledger.h"
#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/backend/fake/fake_settings.h"
#include "daemon/fetch/fetcher.h"
#include "daemon/memory/host_arena.h"
#include "daemon/pipeline/pipeline.h"
#include "proto/base/mutex.h"
#include "proto/shm/segment_layout.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/conformance/device_arena.h"
#include "tests/conformance/device_backend.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/segment_budget.h"

namespace millrace {

// Keeps every result, in order of arrival; the test waits for them.
class CollectingSink : public BatchSink {
 public:
  void ending() override { keep(endings_, std::chrono::steady_clock::now()); }
  void completed(const CompletedBatch& batch) override { keep(completed_, batch); }
  void failed(const FailedBatch& batch) override { keep(failed_, batch); }
  void epoch_started(EpochStreamId, std::uint64_t, std::uint64_t, std::uint64_t) override {}
  void epoch_failed(EpochStreamId, const Error& error) override { keep(epoch_errors_, error); }
  void epoch_given_up(EpochStreamId, const Error& error, const SampleFailure&) override { keep(epoch_errors_, error); }
  void epoch_ended(EpochStreamId stream) override { keep(ended_, stream); }

  std::chrono::steady_clock::time_point wait_ending() { return wait(endings_); }
  CompletedBatch wait_completed() { return wait(completed_); }
  FailedBatch wait_failed() { return wait(failed_); }
  Error wait_epoch_error() { return wait(epoch_errors_); }
  EpochStreamId wait_ended() { return wait(ended_); }
  bool quiet() {
    MutexLock lock(mutex_);
    return completed_.empty() && failed_.empty();
  }

 private:
  template <class T>
  void keep(std::deque<T>& kept, const T& item) {
    MutexLock lock(mutex_);
    kept.push_back(item);
    arrived_.notify_all();
  }
  template <class T>
  T wait(std::deque<T>& kept) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    MutexLock lock(mutex_);
    while (kept.empty()) {
      if (!arrived_.wait_until(mutex_, deadline)) FAIL("no result within a minute");
    }
    T item = std::move(kept.front());
    kept.pop_front();
    return item;
  }

  Mutex mutex_;
  Condition arrived_;
  std::deque<std::chrono::steady_clock::time_point> endings_;
  std::deque<CompletedBatch> completed_;
  std::deque<FailedBatch> failed_;
  std::deque<Error> epoch_errors_;
  std::deque<EpochStreamId> ended_;
};

// Reads as another does. Those below meddle with its tasks.
class FetcherInFront : public Fetcher {
 public:
  explicit FetcherInFront(std::unique_ptr<Fetcher> real) : real_(std::move(real)) {}
  bool try_fetch(FetchTask&& task) override { return real_->try_fetch(std::move(task)); }
  bool try_list(ListTask&& task) override { return real_->try_list(std::move(task)); }
  void relieve() override { real_->relieve(); }
  std::vector<std::string> missing_roots() const override { return real_->missing_roots(); }
  Result<RootFolders> open_roots(const std::vector<std::string>& roots) const override {
    return real_->open_roots(roots);
  }
  Result<void> tell_opener() const override { return real_->tell_opener(); }
  void use_roots(RootFolders roots) override { real_->use_roots(std::move(roots)); }

 private:
  std::unique_ptr<Fetcher> real_;
};

// Calls `between` once, when the task that it was given as the `nth` is done.
class MeddlingFetcher final : public FetcherInFront {
 public:
  MeddlingFetcher(std::unique_ptr<Fetcher> real, std::uint32_t nth, std::function<void()> between)
      : FetcherInFront(std::move(real)), nth_(nth), between_(std::move(between)) {}
  bool try_fetch(FetchTask&& task) override {
    if (++given_ == nth_) {
      task.done = [between = std::exchange(between_, nullptr),
                   done = std::move(task.done)](std::vector<Fetched> items) {
        between();
        done(std::move(items));
      };
    }
    return FetcherInFront::try_fetch(std::move(task));
  }

 private:
  const std::uint32_t nth_;
  std::uint32_t given_ = 0;
  std::function<void()> between_;
};

// Counts its tasks.
class CountingFetcher final : public FetcherInFront {
 public:
  using FetcherInFront::FetcherInFront;
  bool try_fetch(FetchTask&& task) override {
    const auto plainly = task.done;
    task.done = [this, plainly](std::vector<Fetched> items) {
      plainly(std::move(items));
      ended_.fetch_add(1);
    };
    begun_.fetch_add(1);
    if (FetcherInFront::try_fetch(std::move(task))) return true;
    task.done = plainly;
    begun_.fetch_sub(1);
    return false;
  }
  int begun() const { return begun_.load(); }
  int ended() const { return ended_.load(); }  // and have told so

 private:
  std::atomic<int> begun_{0}, ended_{0};
};

struct PipelineSetup {
  std::vector<std::string> roots;
  std::string fake;  // options of the fake backend, which is then there, by pin only
  std::uint32_t slots = 3;
  Bytes slot_bytes = 4_MiB;
  Limits limits;
  Bytes encoded_in_flight = 64_MiB;
  std::chrono::milliseconds host_patience{60'000};
  Bytes decoding = 1_GiB;
  std::function<void()> after_fetch;  // of so many tasks, in the order in which they are given
  std::uint32_t after_how_many = 1;
  std::function<std::unique_ptr<Fetcher>(std::unique_ptr<Fetcher>)> in_front;  // puts one in front of the fetcher
  std::uint32_t slow_reads = ~0U;    // fetch tasks of sessions that read slowly
  std::unique_ptr<Backend> backend;  // instead of those of the table
  MadeUpDevice* device = nullptr;    // whose backend is there, too, by pin only; outlives the fixture
  bool device_first = false;         // before the others, not only by pin
  bool in_device_memory = false;     // the session's tensors
  DatasetUses* uses = nullptr;       // outlives the fixture
  FairWeights weights;
  ControlTime::Now control_clock = &ControlTime::Clock::now;  // another one: lane time alone is charged
};

inline Settings settings_of(const PipelineSetup& setup) {
  Settings settings;
  settings.groups.of<CpuSettings>().lanes = 2;
  settings.groups.of<FakeSettings>().options = setup.fake;
  return settings;
}

class PipelineFixture {
 public:
  static constexpr SessionId kSession{1};
  static constexpr std::uint32_t kMostSamplesApart = 1024;  // in a batch in device memory

  explicit PipelineFixture(PipelineSetup setup) : setup_(std::move(setup)) {
    fetcher_ = *Fetcher::create({.roots = setup_.roots, .threads = 2, .limits = limits_}, counters_);
    if (setup_.after_fetch)
      fetcher_ =
          std::make_unique<MeddlingFetcher>(std::move(fetcher_), setup_.after_how_many, std::move(setup_.after_fetch));
    if (setup_.in_front) fetcher_ = setup_.in_front(std::move(fetcher_));
    auto counting = std::make_unique<CountingFetcher>(std::move(fetcher_));
    counting_ = counting.get();
    fetcher_ = std::move(counting);
    std::vector<NamedBackend> backends;
    if (setup_.backend) backends.push_back({"test", std::move(setup_.backend), false});
    for (const BackendUnderTest& row : backends_under_test()) {
      if (!backends.empty() && backends[0].name == "test") break;
      if (!row.wanted(settings_of(setup_))) continue;
      auto devices = *row.create(settings_of(setup_), {.limits = limits_});
      for (auto& device : devices) {
        const BackendInfo info = device->info();
        backends.push_back({info.name, std::move(device), info.by_pin_only});
      }
    }
    if (setup_.device != nullptr)
      backends.insert(setup_.device_first ? backends.begin() : backends.end(),
                      NamedBackend{"device", std::make_unique<DeviceBackend>(*setup_.device), !setup_.device_first});
    pipeline_ = std::make_unique<Pipeline>(control_, *fetcher_, std::move(backends), ledger_, counters_,
                                           Pipeline::Options{.limits = limits_,
                                                             .host_patience = setup_.host_patience,
                                                             .slow_reads = setup_.slow_reads,
                                                             .uses = setup_.uses,
                                                             .weights = setup_.weights,
                                                             .control_clock = setup_.control_clock});
    thread_ = std::thread([this] { control_.run(); });
    open();
  }

  ~PipelineFixture() {
    work_.reset();
    control_.stop();
    thread_.join();
    pipeline_.reset();
    fetcher_.reset();
  }

  // Runs `call` on the control thread and returns what it returns.
  template <class Call>
  auto on_control(Call call) {
    std::packaged_task<decltype(call())()> task(std::move(call));
    auto answer = task.get_future();
    boost::asio::post(control_, [&task] { task(); });
    return answer.get();
  }

  // Another session, with memory of its own; its results go to `sink`, its time to `states`.
  void open_another(SessionId session, UserId user, BatchSink& sink,
                    const std::shared_ptr<SessionStates>& states = std::make_shared<SessionStates>()) {
    std::shared_ptr<Segment> segment = *budget_.create(shm::segment_bytes(setup_.slots, setup_.slot_bytes));
    auto arena = std::make_shared<HostArena>(segment, setup_.slots, setup_.slot_bytes, UserId{}, copier_);
    auto caller = std::make_shared<Caller>();
    caller->uid = raw(user);
    on_control([&] {
      others_.push_back(
          std::make_unique<SlotPool>(std::move(segment), session, setup_.slots, setup_.slot_bytes, counters_));
      pipeline_->open_session(session, {.slots = others_.back().get(),
                                        .arena = arena,
                                        .sink = &sink,
                                        .caller = caller,
                                        .account = ledger_.account({.user = user, .session = session}),
                                        .states = states});
    });
  }

  Result<void> submit(BatchRequest request) {
    return on_control([&] { return pipeline_->submit(kSession, std::move(request)); });
  }
  Result<void> release(const SealedTensor& tensor) {
    return on_control([&] { return pipeline_->release(kSession, raw(tensor.slot), raw(tensor.generation)); });
  }
  // Returns when nothing is read and nothing will be, until a backend is done with something or the test asks for more.
  void wait_until_nothing_is_read() {
    const bool so = eventually([&] {
      const int begun = counting_->begun();
      if (counting_->ended() != begun) return false;
      on_control([] {});  // behind what those that ended have posted
      return counting_->begun() == begun;
    });
    REQUIRE(so);
  }
  int fetch_tasks() const { return counting_->begun(); }  // so far
  std::uint32_t free_slots() {
    return on_control([&] { return slots_->free_slots(); });
  }
  void close() {
    on_control([&] {
      pipeline_->close_session(kSession);
      slots_.reset();
    });
  }
  Result<std::shared_ptr<const Dataset>> list(const std::string& path) {
    std::promise<Result<std::shared_ptr<const Dataset>>> listed;
    auto answer = listed.get_future();
    REQUIRE(fetcher_->try_list({.path_untrusted = path,
                                .caller = caller_,
                                .max_files = setup_.limits.session.dataset_files,
                                .done = [&](auto result) { listed.set_value(std::move(result)); }}));
    return answer.get();
  }

  // One sample, read beside the pipeline.
  Fetched fetch(const SampleSource& source) {
    std::promise<Fetched> fetched;
    auto answer = fetched.get_future();
    REQUIRE(fetcher_->try_fetch(
        {.items = {FetchItem{0, &source, false}}, .caller = caller_, .done = [&](std::vector<Fetched> items) {
           fetched.set_value(std::move(items.at(0)));
         }}));
    return answer.get();
  }

  std::vector<std::uint8_t> bytes(const SealedTensor& tensor) const {
    std::vector<std::uint8_t> read(tensor.bytes.count);
    const ssize_t got =
        ::pread(arena_->hand_over().descriptor, read.data(), read.size(), static_cast<off_t>(tensor.offset));
    REQUIRE(got == static_cast<ssize_t>(read.size()));
    return read;
  }
  shm::SampleRecord record(const SealedTensor& tensor, std::uint32_t i) const {
    shm::SampleRecord found;
    std::memcpy(&found, segment_->data() + tensor.records_offset + i * sizeof found, sizeof found);
    return found;
  }

  InForce<Limits>& limits() { return limits_; }
  Pipeline& pipeline() { return *pipeline_; }
  CollectingSink& sink() { return sink_; }
  Counters& counters() { return counters_; }
  Ledger& ledger() { return ledger_; }
  const Arena& arena() const { return *arena_; }
  SegmentBudget& budget() { return budget_; }
  MutableByteView slot(const SlotIndex index) const {
    return {segment_->data() + shm::slot_offset(setup_.slots, setup_.slot_bytes, raw(index)), setup_.slot_bytes.count};
  }
  void drop_segment() {
    segment_.reset();
    arena_.reset();
  }

 private:
  void open() {
    const bool apart = setup_.in_device_memory;
    const Bytes shared = apart ? shm::slot_bytes(0_B, kMostSamplesApart) : setup_.slot_bytes;  // a slot of the segment
    segment_ = *budget_.create(shm::segment_bytes(setup_.slots, shared));
    on_control([&] {
      slots_ = std::make_unique<SlotPool>(segment_, kSession, setup_.slots, shared, counters_);
      if (apart)
        arena_ = std::make_shared<DeviceArena>(control_, *setup_.device, setup_.slots, setup_.slot_bytes);
      else
        arena_ = std::make_shared<HostArena>(segment_, setup_.slots, setup_.slot_bytes, UserId{}, copier_);
      const auto account = ledger_.account({.user = caller_->user(), .session = kSession});
      pipeline_->open_session(kSession, {slots_.get(), arena_, &sink_, caller_, account});
    });
  }

  static std::shared_ptr<const Caller> this_process() {
    Caller caller;
    caller.uid = ::geteuid();
    caller.gid = ::getegid();
    return std::make_shared<const Caller>(std::move(caller));
  }

  PipelineSetup setup_;
  InForce<Limits> limits_{setup_.limits};
  std::shared_ptr<const Caller> caller_ = this_process();
  Counters counters_;
  Ledger ledger_{budgets_of(setup_.limits.session, {.encoded = setup_.encoded_in_flight, .decoding = setup_.decoding}),
                 &counters_};
  SegmentBudget budget_{1_GiB};
  boost::asio::io_context control_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{control_.get_executor()};
  Copier copier_{control_};
  std::unique_ptr<Fetcher> fetcher_;
  CountingFetcher* counting_ = nullptr;  // it
  std::shared_ptr<Segment> segment_;
  std::shared_ptr<Arena> arena_;
  CollectingSink sink_;
  std::unique_ptr<SlotPool> slots_;
  std::vector<std::unique_ptr<SlotPool>> others_;  // of sessions beside kSession
  std::unique_ptr<Pipeline> pipeline_;
  std::thread thread_;
};

}  // namespace millrace
