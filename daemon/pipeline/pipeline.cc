#include "daemon/pipeline/pipeline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "daemon/pipeline/batch/deadline.h"
#include "daemon/pipeline/batch/slow_images.h"
#include "daemon/pipeline/epoch/epoch_planner.h"
#include "daemon/pipeline/finalizing.h"
#include "daemon/pipeline/making.h"
#include "daemon/pipeline/reading.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "daemon/pipeline/waiting.h"

namespace millrace {
namespace {

// Of each sample of a shuffled epoch: in its order, and in the positions of its own order and of the one foreseen.
constexpr std::uint64_t kOrderBytes = sizeof(std::uint32_t), kPositionsKept = 2;

std::vector<std::string> names_of(const std::vector<NamedBackend>& backends) {
  std::vector<std::string> names;
  for (const NamedBackend& named : backends) names.push_back(named.name);
  return names;
}

}  // namespace

// The stages and the sessions, and what happens after each step.
class Pipeline::Stages final : private Waiting::Next,
                               private Reading::Next,
                               private Making::Next,
                               private Finalizing::Next {
 public:
  struct SessionRun {
    std::shared_ptr<OpenSession> session;  // shared with its batches
    Waiting waiting;
    std::vector<BatchPtr> active;  // with a slot
  };

  Stages(boost::asio::io_context& control, Fetcher& fetcher, std::vector<NamedBackend> backends, const Ledger& ledger,
         Counters& counters_, Options wanted)
      : counters(counters_),
        options(std::move(wanted)),
        names(names_of(backends)),
        shares(options.weights),
        time(shares, options.control_clock),
        slow(options.slow),
        planner(control, shares, options.uses ? EpochPlanner::Positions::kWanted : EpochPlanner::Positions::kNo),
        finalizing(control, names, time, counters, *this),
        making(control, std::move(backends), ledger, shares, time, slow, counters, *this),
        reading(control, fetcher, ledger, shares, time, slow, counters,
                {.host_patience = options.host_patience,
                 .max_side = options.limits.sample.side,
                 .cache_seed = options.cache_seed,
                 .slow_tasks = options.slow_reads},
                *this),
        batches{.owner = finalizing,
                .counters = counters,
                .backends = names.size(),
                .max_side = options.limits.sample.side},
        orders(kOrderBytes * (options.uses ? 1 + kPositionsKept : 1)),
        around_sessions{control, options.limits, making.placer(), batches, *this, orders, options.uses} {}

  SessionRun* find(SessionId id) {
    const auto found = sessions.find(id);
    return found == sessions.end() ? nullptr : &found->second;
  }
  void begin_waiting(SessionId id);
  void epoch_planned(SessionId id, EpochRequest request, EpochPlanner::Planned planned);
  void retire_epochs(SessionId id);
  void check_idle();

  Counters& counters;
  Options options;
  std::chrono::milliseconds longest_image_limit{options.limits.sample.time};  // a job may have begun under an older one
  const std::vector<std::string> names;                                       // of the backends
  UserShares shares;
  ControlTime time;
  SlowImages slow;
  EpochPlanner planner;
  Finalizing finalizing;  // outlives those that hold batches
  Making making;
  Reading reading;
  Batch::Surroundings batches;
  OrderCharges orders;
  const Waiting::Surroundings around_sessions;
  std::unordered_map<SessionId, SessionRun> sessions;
  std::optional<Error> draining;  // set: why nothing new is taken
  std::function<void()> idle;

 private:
  void read(const BatchPtr& batch, std::vector<SampleTask> tasks) override { making.add(batch, std::move(tasks)); }
  void came_back(const BatchPtr& batch) override { finalizing.finalize(batch); }
  void must_be_read(const BatchPtr& batch) override { reading.begin(batch); }
  void bytes_let_go() override { reading.feed(); }
  void fail(const BatchPtr& batch, Error why, Bytes would_fit) override {
    finalizing.fail(batch, std::move(why), would_fit);
  }
  void dropped(const BatchPtr& batch) override { making.drop(batch); }
  void ended(const BatchPtr& batch) override;
};

void Pipeline::Stages::begin_waiting(SessionId id) {
  SessionRun* run = find(id);
  while (run != nullptr && run->session->parts.slots->free_slots() > 0) {
    const BatchPtr batch = run->waiting.next();
    if (!batch) {
      run->waiting.retire();  // one may just have broken off
      break;
    }
    if (is_late(*batch)) {
      const InFlight held(batch);  // it ends later, not within this
      finalizing.fail(batch, deadline_passed(*batch));
      continue;
    }
    SlotPool& slots = *run->session->parts.slots;
    batch->begin(*slots.lease(), run->session->parts.arena);
    run->active.push_back(batch);
    reading.begin(batch);
    run = find(id);
  }
  reading.feed();
}

void Pipeline::Stages::ended(const BatchPtr& batch) {
  const SessionId id = batch->session().id;
  if (SessionRun* run = find(id)) {
    std::erase(run->active, batch);
    run->waiting.remove(batch);
    retire_epochs(id);
    begin_waiting(id);
  }
  check_idle();
}

void Pipeline::Stages::epoch_planned(SessionId id, EpochRequest request, EpochPlanner::Planned planned) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  const auto working = time.work_for(run->session->owner().user);
  const EpochStreamId stream = request.id;
  const std::optional<EpochOrderSpec> next =
      run->waiting.planned(std::move(request), std::move(planned.order), std::move(planned.positions));
  if (next) {
    planner.foresee(run->session->owner(), *next, [this, id, stream](std::shared_ptr<const EpochPositions> positions) {
      if (SessionRun* session = find(id)) session->waiting.foreseen(stream, std::move(positions));
    });
  }
  if (draining) run->waiting.interrupt(*draining);
  if (const Result<void> any = run->session->parts.slots->has_slots(); !any) run->waiting.interrupt(any.error());
  begin_waiting(id);
  retire_epochs(id);
}

void Pipeline::Stages::retire_epochs(SessionId id) {
  if (SessionRun* run = find(id)) run->waiting.retire();
}

void Pipeline::Stages::check_idle() {
  if (!draining || !idle || finalizing.under_way() > 0) return;
  std::exchange(idle, nullptr)();
}

Pipeline::Pipeline(boost::asio::io_context& control, Fetcher& fetcher, std::vector<NamedBackend> backends,
                   const Ledger& ledger, Counters& counters, Options options)
    : stages_(std::make_unique<Stages>(control, fetcher, std::move(backends), ledger, counters, std::move(options))) {}

Pipeline::~Pipeline() = default;

void Pipeline::open_session(SessionId id, SessionParts parts) {
  const LabelValue user =
      stages_->counters.value_of(MetricId::batches_completed, std::to_string(raw(parts.caller->user())));
  stages_->shares.joined(parts.caller);
  const auto session = std::make_shared<OpenSession>(OpenSession{.id = id, .parts = std::move(parts), .user = user});
  stages_->sessions.emplace(id, Stages::SessionRun{session, Waiting(session, stages_->around_sessions), {}});
}

Result<void> Pipeline::submit(SessionId id, BatchRequest request, Charge room) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  if (stages_->draining) return *stages_->draining;
  const auto same = [&](const BatchPtr& batch) { return batch->is(request.id); };
  if (std::any_of(run->active.begin(), run->active.end(), same) || run->waiting.find(request.id) != nullptr)
    return Error{Code::kInvalid,
                 "batch_id: " + std::to_string(raw(request.id)) + " is under way already; give every batch its own"};
  MILLRACE_TRY_VOID(run->waiting.submit(std::move(request), std::move(room)));
  stages_->begin_waiting(id);
  return {};
}

Bytes Pipeline::slot_bytes_for(std::shared_ptr<const Recipe> recipe, std::uint32_t samples) const {
  const auto layout = TensorLayout::create(std::move(recipe), stages_->options.limits.sample.side);
  return layout ? least_slot_bytes(**layout, samples) : Bytes{};
}

Result<void> Pipeline::check(std::shared_ptr<const Recipe> recipe) const {
  const auto layout = TensorLayout::create(std::move(recipe), stages_->options.limits.sample.side);
  if (!layout) return layout.error();
  return {};
}

void Pipeline::cancel(SessionId id, BatchId batch) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return;
  const auto wanted = [&](const BatchPtr& candidate) { return candidate->is(batch); };
  const auto active = std::find_if(run->active.begin(), run->active.end(), wanted);
  const BatchPtr found = active != run->active.end() ? *active : run->waiting.find(batch);
  if (found) stages_->finalizing.fail(found, Error{Code::kCancelled, "cancelled by the client"});
}

Result<void> Pipeline::release(SessionId id, std::uint32_t slot_untrusted, std::uint64_t generation_untrusted) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  MILLRACE_TRY_VOID(run->session->parts.slots->release(slot_untrusted, generation_untrusted));
  stages_->begin_waiting(id);
  return {};
}

void Pipeline::start_epoch(SessionId id, EpochRequest request) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return;
  if (stages_->draining) return run->session->parts.sink->epoch_failed(request.id, *stages_->draining);
  if (request.order_by == OrderBy::kClient) return run->waiting.begin_given(std::move(request));
  if (!run->waiting.plan(request)) return;
  const EpochOrderSpec spec = request.order;
  stages_->planner.plan(
      run->session->owner(), spec,
      [stages = stages_.get(), id, request = std::move(request)](EpochPlanner::Planned planned) mutable {
        stages->epoch_planned(id, std::move(request), std::move(planned));
      });
}

void Pipeline::give_batches(SessionId id, EpochStreamId stream, Result<GivenBatches> batches) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return;
  run->waiting.give(stream, std::move(batches));
  stages_->begin_waiting(id);
  stages_->retire_epochs(id);
}

void Pipeline::stop_epoch(SessionId id, EpochStreamId stream) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return;
  run->waiting.stop(stream);
  const std::vector<BatchPtr> active = run->active;
  for (const BatchPtr& batch : active) {
    if (batch->epoch() != nullptr && batch->epoch()->id() == stream)
      stages_->finalizing.fail(batch, Error{Code::kCancelled, "the epoch was stopped"});
  }
  stages_->retire_epochs(id);
}

void Pipeline::close_session(SessionId id) {
  const auto found = stages_->sessions.find(id);
  if (found == stages_->sessions.end()) return;
  const auto working = stages_->time.work_for(found->second.session->owner().user);
  const Stages::SessionRun run = std::move(found->second);
  stages_->sessions.erase(found);
  stages_->planner.forget(run.session->owner());
  run.session->close();  // from here on nothing reaches its sink or its slots
  const Error closed{Code::kCancelled, "the session was closed"};
  for (const BatchPtr& batch : run.waiting.batches()) stages_->finalizing.fail(batch, closed);
  for (const BatchPtr& batch : run.active) stages_->finalizing.fail(batch, closed);
  const std::shared_ptr<const Caller>& caller = run.session->parts.caller;
  if (stages_->shares.left(caller)) return;
  stages_->making.left(caller->user());
  stages_->reading.left(caller->user());
}

void Pipeline::slots_changed(SessionId id) {
  Stages::SessionRun* run = stages_->find(id);
  if (run == nullptr) return;
  const Result<void> any = run->session->parts.slots->has_slots();
  if (any) return stages_->begin_waiting(id);
  run->waiting.interrupt(any.error());
  const std::deque<BatchPtr> waiting = run->waiting.batches();
  for (const BatchPtr& batch : waiting) stages_->finalizing.fail(batch, any.error());
  stages_->retire_epochs(id);
}

void Pipeline::drain(Error why, std::function<void()> idle) {
  stages_->draining = std::move(why);
  stages_->idle = std::move(idle);
  std::vector<SessionId> ids;
  for (const auto& [id, run] : stages_->sessions) ids.push_back(id);
  for (const SessionId id : ids) {
    const std::deque<BatchPtr> waiting = stages_->find(id)->waiting.batches();
    for (const BatchPtr& batch : waiting) stages_->finalizing.fail(batch, *stages_->draining);
    stages_->find(id)->waiting.interrupt(*stages_->draining);
    stages_->retire_epochs(id);
  }
  stages_->check_idle();
}

void Pipeline::resume() {
  stages_->draining.reset();
  stages_->idle = nullptr;
}

std::size_t Pipeline::under_way() const {
  return stages_->finalizing.under_way();
}

void Pipeline::apply(const Live& live) {
  stages_->options.limits = live.limits;
  stages_->batches.max_side = live.limits.sample.side;
  stages_->reading.limit_sides(live.limits.sample.side);
  stages_->slow.tell_over(live.slow);
  stages_->longest_image_limit = std::max(stages_->longest_image_limit, live.limits.sample.time);
}

Pipeline::Stillness Pipeline::stillness() const {
  return {.reading = stages_->reading.still_for(), .making = stages_->making.overdue(stages_->longest_image_limit)};
}

void Pipeline::set_weights(FairWeights weights) {
  stages_->shares.set_weights(std::move(weights));
}

ControlTime& Pipeline::control_time() {
  return stages_->time;
}

std::vector<BackendInfo> Pipeline::backends() const {
  return stages_->making.infos();
}

std::vector<TensorMemory*> Pipeline::memories() const {
  return stages_->making.memories();
}

bool Pipeline::backend_lost(std::size_t index) const {
  return stages_->making.lost(index);
}

}  // namespace millrace
