// How a batch ends: mended and sealed, or failed. Every path out of the pipeline goes through end().
#include <algorithm>
#include <utility>

#include "daemon/pipeline/mend.h"
#include "daemon/pipeline/state.h"

namespace millrace {

void Pipeline::State::give_up(BatchRun& batch, std::uint32_t index, Error error) {
  if (error.code != Code::kCancelled) counters.add(MetricId::samples_bad);
  batch.samples[index].error = std::move(error);
  batch.samples[index].done = true;
  ++batch.finished;
  ++batch.bad;
}

// After every change: does the batch end now?
void Pipeline::State::settle(const BatchPtr& batch) {
  if (batch->phase == BatchRun::Phase::kFailing && batch->outstanding == 0) return end(batch);
  if (!batch->running()) return;
  const bool fatal = batch->bad > 0 && batch->request.on_error == OnError::kFail && batch->first_bad_is_known();
  if (batch->finished < batch->count() && !fatal) return;
  find(batch->session)->parts.sink->ending();  // the client wakes up while we mend and write records
  Result<std::vector<Repair>> repairs = mend(*batch);
  if (!repairs) return fail(batch, repairs.error());
  batch->phase = BatchRun::Phase::kMending;
  ++batch->outstanding;
  batch->arena->settle(batch->lease->slot, *std::move(repairs),
                       [this, batch](const Result<void>& result) { settled(batch, result); });
}

// The slot's bytes are final, or lost.
void Pipeline::State::settled(const BatchPtr& batch, const Result<void>& result) {
  --batch->outstanding;
  if (batch->phase != BatchRun::Phase::kMending) return settle(batch);  // failed meanwhile
  if (!result) return fail(batch, result.error());
  complete(batch);
}

void Pipeline::State::complete(const BatchPtr& batch) {
  SessionRun* run = find(batch->session);
  MILLRACE_CHECK(run != nullptr);  // close_session() fails every batch
  counters.add(MetricId::batches_completed);
  counters.add(MetricId::tensor_bytes, batch->order.empty() ? 0 : batch->tensor.count);
  CompletedBatch result{
      .id = batch->request.id, .samples = batch->count(), .failures = batch->failures(), .epoch = batch->epoch};
  if (batch->order.empty()) {
    run->parts.slots->abandon(*batch->lease);
  } else {
    write_records(*batch, backend_names);
    result.tensor = describe_tensor(*batch);
    const auto samples = static_cast<std::uint32_t>(batch->order.size());
    result.tensor->sealed_at_ns =
        run->parts.slots->seal(*batch->lease, batch->tensor, result.tensor->records_offset, samples);
  }
  batch->lease.reset();
  hand_over(batch, std::move(result));  // nothing between the seal and this: somebody waits
  end(batch);
}

void Pipeline::State::fail(const BatchPtr& batch, Error error) {
  if (batch->phase == BatchRun::Phase::kFailing || batch->phase == BatchRun::Phase::kEnded) return;
  batch->phase = BatchRun::Phase::kFailing;
  batch->stop->stop();
  drop_set_aside(batch);
  counters.add(MetricId::batches_failed);
  FailedBatch result{.id = batch->request.id,
                     .samples = batch->count(),
                     .error = std::move(error),
                     .failures = batch->failures(),
                     .slot_bytes = batch->slot_bytes};
  if (batch->epoch) result.stream = batch->epoch->stream;
  hand_over(batch, std::move(result));
  if (batch->outstanding == 0) end(batch);
}

// The batch is told of at once; its slot comes back in end(), when no lane writes to it any more.
void Pipeline::State::hand_over(const BatchPtr& batch, std::variant<CompletedBatch, FailedBatch> result) {
  SessionRun* run = find(batch->session);
  if (run == nullptr) return;
  BatchSink& sink = *run->parts.sink;
  if (!batch->epoch) {
    if (const auto* completed = std::get_if<CompletedBatch>(&result)) sink.completed(*completed);
    if (const auto* failed = std::get_if<FailedBatch>(&result)) sink.failed(*failed);
    return;
  }
  for (const auto& epoch : run->epochs) {
    if (epoch->id() == batch->epoch->stream) return epoch->ended(sink, batch->request.id, std::move(result));
  }
}

void Pipeline::State::end(const BatchPtr& batch) {
  if (batch->phase == BatchRun::Phase::kEnded) return;
  if (batch->arena) counters.subtract(MetricId::samples_in_flight, batch->count());
  for (const std::optional<EncodedImage>& image : batch->packed) {
    if (image) forget_encoded(*image);
  }
  batch->packed.clear();
  batch->phase = BatchRun::Phase::kEnded;
  if (batch->deadline) batch->deadline->cancel();
  if (batch->fetch_later) batch->fetch_later->cancel();
  --unended;
  counters.subtract(MetricId::batches_in_flight);
  if (batch->lease) batch->arena->forget(batch->lease->slot);
  if (SessionRun* run = find(batch->session)) {
    if (batch->lease) run->parts.slots->abandon(*batch->lease);
    std::erase(run->active, batch);
    std::erase(run->waiting, batch);
    retire_epochs(batch->session);
    begin_waiting(batch->session);
  }
  batch->lease.reset();
  batch->arena.reset();
  check_idle();
}

void Pipeline::State::check_idle() {
  if (!draining || unended > 0 || !idle) return;
  std::exchange(idle, nullptr)();
}

}  // namespace millrace
