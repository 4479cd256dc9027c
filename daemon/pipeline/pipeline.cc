#include "daemon/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "daemon/pipeline/batch/deadline.h"
#include "daemon/pipeline/recorded.h"
#include "daemon/pipeline/session_state.h"

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

Pipeline::Pipeline(boost::asio::io_context& control, Fetcher& fetcher, std::vector<NamedBackend> backends,
                   const Ledger& ledger, Counters& counters, Options options)
    : counters_(counters),
      options_(std::move(options)),
      names_(names_of(backends)),
      shares_(options_.weights),
      time_(shares_, options_.control_clock),
      slow_(options_.slow),
      planner_(control, shares_, options_.uses ? EpochPlanner::Positions::kWanted : EpochPlanner::Positions::kNo),
      finalizing_(control, names_, time_, counters_, *this),
      making_(control, std::move(backends), ledger, shares_, time_, slow_, counters_, *this),
      reading_(control, fetcher, ledger, shares_, time_, slow_, counters_,
               {.host_patience = options_.host_patience,
                .limits = options_.limits,
                .cache_seed = options_.cache_seed,
                .slow_tasks = options_.slow_reads},
               *this),
      batches_{.owner = finalizing_,
               .counters = counters_,
               .backends = names_.size(),
               .limits = options_.limits,
               .devices = making_.devices()},
      orders_(kOrderBytes * (options_.uses ? 1 + kPositionsKept : 1)),
      around_sessions_{control, options_.limits, making_.placer(), batches_, *this, orders_, options_.uses} {}

Pipeline::SessionRun* Pipeline::find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

// In which state it is from now on.
void Pipeline::look(const SessionRun& run) {
  enter(*run.session, state_of(*run.session, run.waiting, run.active, run.lists));
}

void Pipeline::enter(const OpenSession& session, SessionState state) {
  SessionStates& states = *session.parts.states;
  if (state == states.now_in()) return;
  const auto now = SessionStates::Clock::now();
  states.enter(state, now);
  record_state(session, state, now);
}

void Pipeline::look(SessionId id) {
  if (const SessionRun* run = find(id)) look(*run);
}

void Pipeline::moved(const Batch& batch) {
  record_stage(batch);
  look(batch.session().id);
}

void Pipeline::lists(SessionId id, bool some) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  run->lists = some;
  look(*run);
}

void Pipeline::begin_waiting(SessionId id) {
  SessionRun* run = find(id);
  while (run != nullptr && run->session->parts.slots->free_slots() > 0) {
    const BatchPtr batch = run->waiting.next();
    if (!batch) {
      run->waiting.retire();  // one may just have broken off
      break;
    }
    if (is_late(*batch)) {
      const InFlight held(batch);  // it ends later, not within this
      finalizing_.fail(batch, deadline_passed(*batch));
      continue;
    }
    SlotPool& slots = *run->session->parts.slots;
    batch->begin(*slots.lease(), run->session->parts.arena);
    run->active.push_back(batch);
    record_stage(*batch);
    reading_.begin(batch);
    run = find(id);
  }
  reading_.feed();
  look(id);
  if (run = find(id); run != nullptr) record_slots(*run->session, run->active);
}

void Pipeline::ended(const BatchPtr& batch) {
  const SessionId id = batch->session().id;
  if (SessionRun* run = find(id)) {
    std::erase(run->active, batch);
    run->waiting.remove(batch);
    begin_waiting(id);  // first: the session waits neither for its client nor for memory, since a slot is free
    retire_epochs(id);
  }
  check_idle();
}

void Pipeline::epoch_planned(SessionId id, EpochRequest request, EpochPlanner::Planned planned) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  const auto working = time_.work_for(run->session->owner().user, run->session->parts.costs);
  const EpochStreamId stream = request.id;
  const std::optional<EpochOrderSpec> next =
      run->waiting.planned(std::move(request), std::move(planned.order), std::move(planned.positions));
  if (next) {
    planner_.foresee(run->session->owner(), *next, [this, id, stream](std::shared_ptr<const EpochPositions> positions) {
      if (SessionRun* session = find(id)) session->waiting.foreseen(stream, std::move(positions));
    });
  }
  if (draining_) run->waiting.interrupt(*draining_);
  if (const Result<void> any = run->session->parts.slots->has_slots(); !any) run->waiting.interrupt(any.error());
  begin_waiting(id);
  retire_epochs(id);
}

void Pipeline::retire_epochs(SessionId id) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  run->waiting.retire();
  look(id);
}

void Pipeline::check_idle() {
  if (!draining_ || !idle_ || finalizing_.under_way() > 0) return;
  std::exchange(idle_, nullptr)();
}

void Pipeline::open_session(SessionId id, SessionParts parts) {
  const LabelValue user = counters_.value_of(MetricId::batches_completed, std::to_string(raw(parts.caller->user())));
  shares_.joined(parts.caller);
  const auto session = std::make_shared<OpenSession>(OpenSession{.id = id, .parts = std::move(parts), .user = user});
  const SessionStates& states = *session->parts.states;
  const auto now = SessionStates::Clock::now();
  record_state(*session, states.now_in(), now - states.age(now));
  sessions_.emplace(id, SessionRun{session, Waiting(session, around_sessions_), {}, false});
}

Result<void> Pipeline::submit(SessionId id, BatchRequest request, Charge room) {
  SessionRun* run = find(id);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  if (draining_) return *draining_;
  const auto same = [&](const BatchPtr& batch) { return batch->is(request.id); };
  if (std::any_of(run->active.begin(), run->active.end(), same) || run->waiting.find(request.id) != nullptr)
    return Error{Code::kInvalid,
                 "batch_id: " + std::to_string(raw(request.id)) + " is under way already; give every batch its own"};
  const BatchId batch = request.id;
  MILLRACE_TRY_VOID(run->waiting.submit(std::move(request), std::move(room)));
  if (trace::on()) record_stage(*run->waiting.find(batch));
  begin_waiting(id);
  return {};
}

Bytes Pipeline::slot_bytes_for(std::shared_ptr<const Recipe> recipe, std::uint32_t samples) const {
  const auto layout = TensorLayout::create(std::move(recipe), options_.limits.now().sample.side);
  return layout ? least_slot_bytes(**layout, samples) : Bytes{};
}

Result<void> Pipeline::check(std::shared_ptr<const Recipe> recipe) const {
  const auto layout = TensorLayout::create(std::move(recipe), options_.limits.now().sample.side);
  if (!layout) return layout.error();
  return {};
}

void Pipeline::cancel(SessionId id, BatchId batch) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  const auto wanted = [&](const BatchPtr& candidate) { return candidate->is(batch); };
  const auto active = std::find_if(run->active.begin(), run->active.end(), wanted);
  const BatchPtr found = active != run->active.end() ? *active : run->waiting.find(batch);
  if (found) finalizing_.fail(found, Error{Code::kCancelled, "cancelled by the client"});
}

Result<void> Pipeline::release(SessionId id, std::uint32_t slot_untrusted, std::uint64_t generation_untrusted) {
  SessionRun* run = find(id);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  MILLRACE_TRY_VOID(run->session->parts.slots->release(slot_untrusted, generation_untrusted));
  begin_waiting(id);
  return {};
}

void Pipeline::start_epoch(SessionId id, EpochRequest request) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  if (draining_) return run->session->parts.sink->epoch_failed(request.id, *draining_);
  if (request.order_by == OrderBy::kClient) {
    run->waiting.begin_given(std::move(request));
    return look(id);
  }
  if (!run->waiting.plan(request)) return;
  look(id);
  const EpochOrderSpec spec = request.order;
  planner_.plan(run->session->owner(), spec,
                [this, id, request = std::move(request)](EpochPlanner::Planned planned) mutable {
                  epoch_planned(id, std::move(request), std::move(planned));
                });
}

void Pipeline::give_batches(SessionId id, EpochStreamId stream, Result<GivenBatches> batches) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  run->waiting.give(stream, std::move(batches));
  begin_waiting(id);
  retire_epochs(id);
}

void Pipeline::stop_epoch(SessionId id, EpochStreamId stream) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  run->waiting.stop(stream);
  const std::vector<BatchPtr> active = run->active;
  for (const BatchPtr& batch : active) {
    if (batch->epoch() != nullptr && batch->epoch()->id() == stream)
      finalizing_.fail(batch, Error{Code::kCancelled, "the epoch was stopped"});
  }
  retire_epochs(id);
}

void Pipeline::close_session(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const auto working = time_.work_for(found->second.session->owner().user, found->second.session->parts.costs);
  const SessionRun run = std::move(found->second);
  sessions_.erase(found);
  planner_.forget(run.session->owner());
  enter(*run.session, SessionState::kIdle);
  run.session->close();  // from here on nothing reaches its sink or its slots
  const Error closed{Code::kCancelled, "the session was closed"};
  for (const BatchPtr& batch : run.waiting.batches()) finalizing_.fail(batch, closed);
  for (const BatchPtr& batch : run.active) finalizing_.fail(batch, closed);
  const std::shared_ptr<const Caller>& caller = run.session->parts.caller;
  if (shares_.left(caller)) return;
  making_.left(caller->user());
  reading_.left(caller->user());
}

void Pipeline::slots_changed(SessionId id) {
  SessionRun* run = find(id);
  if (run == nullptr) return;
  const Result<void> any = run->session->parts.slots->has_slots();
  if (any) return begin_waiting(id);
  run->waiting.interrupt(any.error());
  const std::deque<BatchPtr> waiting = run->waiting.batches();
  for (const BatchPtr& batch : waiting) finalizing_.fail(batch, any.error());
  retire_epochs(id);
}

void Pipeline::drain(Error why, std::function<void()> idle) {
  draining_ = std::move(why);
  idle_ = std::move(idle);
  std::vector<SessionId> ids;
  for (const auto& [id, run] : sessions_) ids.push_back(id);
  for (const SessionId id : ids) {
    const std::deque<BatchPtr> waiting = find(id)->waiting.batches();
    for (const BatchPtr& batch : waiting) finalizing_.fail(batch, *draining_);
    find(id)->waiting.interrupt(*draining_);
    retire_epochs(id);
  }
  check_idle();
}

void Pipeline::resume() {
  draining_.reset();
  idle_ = nullptr;
}

void Pipeline::settings_changed(std::chrono::milliseconds slow) {
  slow_.tell_over(slow);
  longest_image_limit_ = std::max(longest_image_limit_, options_.limits.now().sample.time);
}

void Pipeline::record_all() const {
  const auto now = SessionStates::Clock::now();
  for (const auto& [id, run] : sessions_) {
    record_state(*run.session, run.session->parts.states->now_in(), now);
    record_slots(*run.session, run.active);
    for (const BatchPtr& batch : run.waiting.batches()) record_stage(*batch);
    for (const BatchPtr& batch : run.active) record_stage(*batch);
  }
}

Pipeline::Stillness Pipeline::stillness() const {
  return {.reading = reading_.still_for(), .making = making_.overdue(longest_image_limit_)};
}

}  // namespace millrace
