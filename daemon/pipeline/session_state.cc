#include "daemon/pipeline/session_state.h"

#include <algorithm>

namespace millrace {

SessionState state_of(const Batch& batch) {
  const std::uint32_t making = batch.count(SampleState::kMaking);
  if (making > batch.on_devices()) return SessionState::kMaking;
  if (making > 0) return SessionState::kDevice;
  if (batch.count(SampleState::kWaiting) > 0) return SessionState::kLaneTurn;
  // Without places they wait for the others' sizes, which are read.
  if (batch.count(SampleState::kDeferred) > 0 && batch.has_places()) return SessionState::kDecodingBudget;
  if (batch.not_read() == 0) return SessionState::kSettling;
  const bool pauses = batch.reading.want && batch.reading.want->pausing;
  if (pauses || batch.reading.stuck > 0) return SessionState::kHost;
  return batch.count(SampleState::kReading) > 0 ? SessionState::kReading : batch.reading.waits_for;
}

namespace {

// Of failed batches that still have their slots: somebody may write there.
SessionState state_of_failed(std::span<const BatchPtr> failed) {
  const auto hangs = [](const BatchPtr& batch) { return batch->reading.stuck > 0; };
  return std::ranges::any_of(failed, hangs) ? SessionState::kHost : SessionState::kSettling;
}

}  // namespace

SessionState state_of(const OpenSession& session, const Waiting& waiting, std::span<const BatchPtr> active,
                      bool lists) {
  const auto goes_on = [](const BatchPtr& batch) { return !batch->over(); };
  const auto oldest = std::ranges::find_if(active, goes_on);
  if (oldest != active.end()) return state_of(**oldest);
  const SlotPool& slots = *session.parts.slots;
  const std::uint32_t ready = slots.slots() - slots.slots_not_ready();
  const bool all_ready = slots.slots_not_ready() == 0;
  if (waiting.wants_slot()) {
    if (!active.empty()) return state_of_failed(active);
    return all_ready ? SessionState::kClient : SessionState::kFilling;
  }
  if (waiting.is_shuffling()) return SessionState::kShuffling;
  if (lists) return SessionState::kListing;
  if (!active.empty()) return state_of_failed(active);
  if (all_ready && ready > 0 && slots.free_slots() == 0) return SessionState::kClient;
  const bool client_is_at_one = slots.free_slots() < ready;
  return client_is_at_one || waiting.is_to_be_given() ? SessionState::kRequest : SessionState::kIdle;
}

}  // namespace millrace
