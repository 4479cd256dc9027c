#include "daemon/pipeline/recorded.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "daemon/pipeline/session_state.h"

namespace millrace {
namespace {

using trace::What;

std::string_view stage_of(const Batch& batch) {
  switch (batch.phase()) {
    case Batch::Phase::kQueued:
      return "waiting";
    case Batch::Phase::kRunning:
      return session_state_name(state_of(batch));
    case Batch::Phase::kFinalizing:
      return session_state_name(SessionState::kSettling);
    case Batch::Phase::kFailing:
    case Batch::Phase::kEnded:
      break;
  }
  return "failing";
}

trace::Event of_batch(What what, const Batch& batch) {
  return {.what = what,
          .index = batch.count(),
          .of = subject_of(batch.owner()),
          .at = trace::now(),
          .number = reinterpret_cast<std::uintptr_t>(&batch),
          .more = raw(batch.request().id)};
}

}  // namespace

trace::Subject subject_of(const Owner& owner) {
  return {owner.user, owner.session};
}

void record_state(const OpenSession& session, SessionState state, SessionStates::Clock::time_point since) {
  if (!trace::on()) return;
  const auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(since.time_since_epoch());
  trace::record({.what = What::kSessionState,
                 .kind = static_cast<std::uint8_t>(state),
                 .of = subject_of(session.owner()),
                 .at = at.count()});
}

void record_slots(const OpenSession& session, std::span<const BatchPtr> active) {
  if (!trace::on() || !session.open) return;
  const SlotPool& slots = *session.parts.slots;
  const auto under_way = std::ranges::count_if(active, [](const BatchPtr& batch) { return !batch->over(); });
  const std::uint32_t others = slots.slots_not_ready() + slots.free_slots() + static_cast<std::uint32_t>(active.size());
  trace::record({.what = What::kSlots,
                 .index = slots.free_slots(),
                 .of = subject_of(session.owner()),
                 .at = trace::now(),
                 .number = static_cast<std::uint64_t>(under_way),
                 .more = slots.slots() - std::min(others, slots.slots())});
}

void record_stage(const Batch& batch) {
  if (!trace::on()) return;
  trace::Event event = of_batch(What::kBatchStage, batch);
  event.text = stage_of(batch);
  trace::record(event);
}

void record_end(const Batch& batch, BatchEnd end) {
  if (!trace::on()) return;
  trace::Event event = of_batch(What::kBatchEnds, batch);
  event.failed = end == BatchEnd::kFailed;
  trace::record(event);
}

void record_portions(std::size_t at_fetch_threads) {
  if (trace::on()) trace::record({.what = What::kPortions, .at = trace::now(), .number = at_fetch_threads});
}

void record_jobs(std::string_view backend, std::size_t jobs) {
  if (trace::on()) trace::record({.what = What::kJobs, .at = trace::now(), .number = jobs, .text = backend});
}

}  // namespace millrace
