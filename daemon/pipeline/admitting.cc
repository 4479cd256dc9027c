// From a request to a slot: what may begin, and when.
#include <algorithm>
#include <utility>

#include "daemon/model/stopping.h"
#include "daemon/pipeline/state.h"
#include "daemon/plan/recipe_check.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
namespace {

Result<std::optional<Size>> tensor_size(const Recipe& recipe, const Limits& limits) {
  MILLRACE_TRY_VOID(check_recipe(recipe, limits.sample.side));
  if (recipe.packing == Packing::kPacked) return std::optional<Size>{};
  return fixed_size(recipe);
}

// Of a packed batch, whose sizes nobody knows yet, the records alone.
Bytes needed_at_least(const Recipe& recipe, std::uint32_t samples) {
  const bool packed = recipe.packing == Packing::kPacked;
  return shm::slot_bytes(packed ? Bytes{0} : one_size_tensor_bytes(recipe, samples), samples);
}

Result<void> check_fits(const Recipe& recipe, std::uint32_t samples, Bytes slot) {
  const Bytes needed = needed_at_least(recipe, samples);
  if (needed <= slot) return {};
  return Error{Code::kExhausted, "a batch of " + std::to_string(samples) + " needs " + to_text_beside(needed, slot) +
                                     " and the session's slots have " + to_text_beside(slot, needed) +
                                     ": open the session with slot_bytes of at least " + std::to_string(needed.count) +
                                     ", or make smaller batches"};
}

}  // namespace

Bytes Pipeline::slot_bytes_for(const Recipe& recipe, std::uint32_t samples) const {
  return tensor_size(recipe, state_->options.limits) ? needed_at_least(recipe, samples) : Bytes{};
}

Result<void> Pipeline::State::admit(SessionId session, BatchRequest request) {
  SessionRun* run = find(session);
  if (run == nullptr) return Error{Code::kPrecondition, "the session is closed"};
  if (draining) return stopping();
  const auto same = [&](const BatchPtr& batch) { return !batch->epoch && batch->request.id == request.id; };
  if (std::any_of(run->active.begin(), run->active.end(), same) ||
      std::any_of(run->waiting.begin(), run->waiting.end(), same))
    return Error{Code::kInvalid,
                 "batch_id: " + std::to_string(raw(request.id)) + " is under way already; give every batch its own"};
  const std::uint32_t most = options.limits.session.queued_batches;
  if (run->waiting.size() >= most) {
    return Error{Code::kExhausted,
                 std::to_string(most) + " batches of this session wait for a slot already: release tensors, open the " +
                     "session with more slots, or raise limits.queued_batches in the daemon's settings"};
  }
  MILLRACE_TRY(BatchPtr batch, new_batch(session, run->parts, std::move(request)));
  run->waiting.push_back(batch);
  watch_deadline(batch);
  begin_waiting(session);
  return {};
}

Result<BatchPtr> Pipeline::State::new_batch(SessionId session, const SessionParts& parts, BatchRequest request) {
  if (request.samples.empty()) return Error{Code::kInvalid, "samples: a batch needs at least one"};
  MILLRACE_TRY_VOID(placer.check_pin(request.backend));
  auto batch = std::make_shared<BatchRun>();
  MILLRACE_TRY(batch->one_size, tensor_size(*request.recipe, options.limits));
  const auto count = static_cast<std::uint32_t>(request.samples.size());
  MILLRACE_TRY_VOID(parts.slots->has_slots());
  MILLRACE_TRY_VOID(check_fits(*request.recipe, count, parts.arena->slot_bytes()));
  if (batch->one_size) {
    batch->tensor = one_size_tensor_bytes(*request.recipe, count);
  } else {
    batch->packed.resize(count);
    batch->unsized = count;
  }
  batch->session = session;
  batch->samples.resize(count);
  batch->ready.resize(backends.size());
  batch->request = std::move(request);
  ++unended;
  counters.add(MetricId::batches_admitted);
  counters.add(MetricId::batches_in_flight);
  return batch;
}

void Pipeline::State::slots_changed(SessionId session) {
  SessionRun* run = find(session);
  if (run == nullptr) return;
  const Result<void> any = run->parts.slots->has_slots();
  if (any) return begin_waiting(session);
  for (const auto& epoch : run->epochs) epoch->interrupt(any.error());
  const std::deque<BatchPtr> waiting = run->waiting;
  for (const BatchPtr& batch : waiting) fail(batch, any.error());
  retire_epochs(session);
}

void Pipeline::State::begin_waiting(SessionId session) {
  SessionRun* run = find(session);
  while (run != nullptr && run->parts.slots->free_slots() > 0) {
    const BatchPtr batch = next_to_begin(session, *run);
    if (!batch) break;
    begin(*run, batch);
    run = find(session);
  }
  feed_fetch();
}

// Submitted batches before epochs' ones, the highest priority first; epochs in turns.
BatchPtr Pipeline::State::next_to_begin(SessionId session, SessionRun& run) {
  const auto less_urgent = [](const BatchPtr& a, const BatchPtr& b) {
    return a->request.priority < b->request.priority;
  };
  const auto first = std::max_element(run.waiting.begin(), run.waiting.end(), less_urgent);
  if (first != run.waiting.end()) {
    BatchPtr batch = std::move(*first);
    run.waiting.erase(first);
    return batch;
  }
  for (std::size_t turn = 0; turn < run.epochs.size(); ++turn) {
    std::rotate(run.epochs.begin(), run.epochs.begin() + 1, run.epochs.end());
    EpochRun& epoch = *run.epochs.back();
    std::optional<BatchRequest> request = epoch.next();
    if (!request) continue;
    const EpochMark mark = epoch.mark_after(request->id);
    Result<BatchPtr> batch = new_batch(session, run.parts, std::move(*request));
    MILLRACE_CHECK(batch.has_value());  // start_epoch() checked recipe, backend and size for every batch
    (*batch)->epoch = mark;
    return *batch;
  }
  return nullptr;
}

void Pipeline::State::begin(SessionRun& run, const BatchPtr& batch) {
  batch->lease = run.parts.slots->lease();
  batch->arena = run.parts.arena;
  batch->phase = BatchRun::Phase::kRunning;
  run.active.push_back(batch);
  counters.add(MetricId::samples_in_flight, batch->count());
  queue_for_fetch(batch);
}

void Pipeline::State::watch_deadline(const BatchPtr& batch) {
  if (!batch->request.deadline) return;
  batch->deadline.emplace(control, *batch->request.deadline);
  batch->deadline->async_wait([this, weak = std::weak_ptr(batch)](boost::system::error_code cancelled) {
    const BatchPtr late = weak.lock();
    if (cancelled || !late) return;
    fail(late, Error{Code::kDeadline, "the deadline passed with " + std::to_string(late->finished) + " of " +
                                          std::to_string(late->count()) + " images made"});
  });
}

void Pipeline::State::start_epoch(SessionId session, EpochRequest request) {
  SessionRun* run = find(session);
  if (run == nullptr) return;
  BatchSink& sink = *run->parts.sink;
  if (draining) return sink.epoch_failed(request.id, stopping());
  const auto same = [&](const auto& epoch) { return epoch->id() == request.id; };
  if (run->planning.contains(request.id) || std::any_of(run->epochs.begin(), run->epochs.end(), same))
    return sink.epoch_failed(
        request.id, Error{Code::kInvalid, "stream_id: an epoch of this id is running; give every epoch its own"});
  Result<void> checked = placer.check_pin(request.backend);
  if (!checked) return sink.epoch_failed(request.id, checked.error());
  const Result<std::optional<Size>> size = tensor_size(*request.recipe, options.limits);
  if (!size) return sink.epoch_failed(request.id, size.error());
  checked = run->parts.slots->has_slots();
  if (!checked) return sink.epoch_failed(request.id, checked.error());
  checked = check_fits(*request.recipe, request.order.batch_size, run->parts.arena->slot_bytes());
  if (!checked) return sink.epoch_failed(request.id, checked.error());

  run->planning.emplace(request.id, PlannedEpoch::kWanted);
  boost::asio::post(planner, [this, session, request = std::move(request)]() mutable {
    Result<EpochOrder> order = EpochOrder::create(request.order);
    post([this, session, request = std::move(request), order = std::move(order)]() mutable {
      epoch_planned(session, std::move(request), std::move(order));
    });
  });
}

void Pipeline::State::epoch_planned(SessionId session, EpochRequest request, Result<EpochOrder> order) {
  SessionRun* run = find(session);
  if (run == nullptr) return;
  const auto planned = run->planning.extract(request.id);
  if (!order) return run->parts.sink->epoch_failed(request.id, order.error());
  run->epochs.push_back(std::make_unique<EpochRun>(std::move(request), *std::move(order)));
  EpochRun& epoch = *run->epochs.back();
  epoch.announce(*run->parts.sink);
  if (planned.mapped() == PlannedEpoch::kStopped) epoch.stop();
  if (draining) epoch.interrupt(stopping());
  if (const Result<void> any = run->parts.slots->has_slots(); !any) epoch.interrupt(any.error());
  begin_waiting(session);
  retire_epochs(session);
}

void Pipeline::State::retire_epochs(SessionId session) {
  SessionRun* run = find(session);
  if (run == nullptr) return;
  for (std::size_t i = run->epochs.size(); i-- > 0;) {
    if (!run->epochs[i]->over()) continue;
    const std::unique_ptr<EpochRun> done = std::move(run->epochs[i]);
    run->epochs.erase(run->epochs.begin() + static_cast<std::ptrdiff_t>(i));
    done->say_goodbye(*run->parts.sink);
  }
}

}  // namespace millrace
