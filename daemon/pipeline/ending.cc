// How a batch ends: mended and sealed, or failed. Every path out of the pipeline goes through end().
#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/pipeline/mend.h"
#include "daemon/pipeline/state.h"

namespace millrace {
namespace {

// Without a backend left, the control thread mends: the only time that it touches pixels.
void carry_out(const std::vector<RepairStep>& steps) {
  for (const RepairStep& step : steps) {
    if (step.from.empty()) {
      std::memset(step.to.data(), 0, step.to.size());
    } else {
      std::memmove(step.to.data(), step.from.data(), step.to.size());
    }
  }
}

}  // namespace

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
  Result<std::vector<RepairStep>> steps = mend(*batch);
  if (!steps) return fail(batch, steps.error());
  repair(batch, *std::move(steps));
}

void Pipeline::State::repair(const BatchPtr& batch, std::vector<RepairStep> steps) {
  batch->phase = BatchRun::Phase::kMending;
  if (steps.empty()) return complete(batch);
  RepairJob job{.steps = std::move(steps), .keep_alive = batch, .done = [this, batch] {
                  post([this, batch] { mended(batch); });
                }};
  ++batch->outstanding;
  for (BackendRun& run : backends) {
    if (!run.backend->lost() && run.backend->try_repair(std::move(job))) return;
  }
  carry_out(job.steps);
  mended(batch);
}

void Pipeline::State::mended(const BatchPtr& batch) {
  --batch->outstanding;
  if (batch->phase == BatchRun::Phase::kMending) return complete(batch);
  settle(batch);  // failed meanwhile
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
  if (batch->segment) counters.subtract(MetricId::samples_in_flight, batch->count());
  for (const std::optional<EncodedImage>& image : batch->packed) {
    if (image) forget_encoded(*image);
  }
  batch->packed.clear();
  batch->phase = BatchRun::Phase::kEnded;
  if (batch->deadline) batch->deadline->cancel();
  if (batch->fetch_later) batch->fetch_later->cancel();
  --unended;
  counters.subtract(MetricId::batches_in_flight);
  if (SessionRun* run = find(batch->session)) {
    if (batch->lease) run->parts.slots->abandon(*batch->lease);
    std::erase(run->active, batch);
    std::erase(run->waiting, batch);
    retire_epochs(batch->session);
    begin_waiting(batch->session);
  }
  batch->lease.reset();
  batch->segment.reset();
  check_idle();
}

void Pipeline::State::check_idle() {
  if (!draining || unended > 0 || !idle) return;
  std::exchange(idle, nullptr)();
}

}  // namespace millrace
