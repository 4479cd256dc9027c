#include "daemon/pipeline/finalizing.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "daemon/pipeline/batch/bad_sample_guard.h"
#include "daemon/pipeline/batch/deadline.h"
#include "daemon/pipeline/batch/sample_records.h"
#include "daemon/pipeline/epoch/epoch_run.h"
#include "daemon/pipeline/recorded.h"

namespace millrace {
namespace {

std::string named(const SampleFailure& failure) {
  return "sample " + std::to_string(failure.index) + " (" + failure.source + "): " + failure.error.message;
}

Error failed_by(const SampleFailure& failure) {
  return Error{failure.error.code,
               named(failure) + "; the batch's on_error is fail (skip, zero or substitute keep the others)"};
}

Error no_stand_in(const SampleFailure& failure) {
  return Error{failure.error.code, named(failure) +
                                       "; no other sample of the batch is good, so none can stand in: its " +
                                       "on_error is substitute (skip leaves bad ones out, zero blanks them)"};
}

}  // namespace

void Finalizing::finalize(const BatchPtr& batch) {
  if (!batch->running()) return;
  const bool fatal =
      batch->count(SampleState::kBad) > 0 && batch->request().on_error == OnError::kFail && batch->first_bad_is_known();
  if (batch->finished() < batch->count() && !fatal) return;
  batch->session().parts.sink->ending();  // the client wakes up while we apply the policy and write records
  Result<FinalSlot> slot = final_slot(*batch);
  if (!slot) return fail(batch, slot.error());
  std::vector<Repair> repairs = std::move(slot->repairs);
  batch->finalize(*std::move(slot));
  const std::uint32_t number = finalizing_.add(InFlight(batch));
  batch->arena().finalize(batch->lease().slot, std::move(repairs),
                          [this, number](const Result<void>& result) { finalized(number, result); });
}

Result<FinalSlot> Finalizing::final_slot(const Batch& batch) const {
  std::vector<FinishedSample> samples;
  samples.reserve(batch.count());
  for (const SampleRun& sample : batch.samples())
    samples.push_back({.good = sample.state == SampleState::kMade, .place = sample.place});
  const auto bad =
      std::find_if(samples.begin(), samples.end(), [](const FinishedSample& sample) { return !sample.good; });
  const bool none_good = batch.count(SampleState::kBad) == batch.count();
  if (none_good && batch.request().guard == Guard::kOn)
    return BadSampleGuard::none_good(batch.count(), batch.failure(0));
  std::optional<FinalSlot> slot = apply_error_policy(batch.layout(), batch.request().on_error, samples, batch.tensor());
  if (slot) return *std::move(slot);
  const SampleFailure first = batch.failure(static_cast<std::uint32_t>(bad - samples.begin()));
  return batch.request().on_error == OnError::kFail ? failed_by(first) : no_stand_in(first);
}

// The slot's bytes are final, or lost.
void Finalizing::finalized(std::uint32_t number, const Result<void>& result) {
  const BatchPtr batch = finalizing_.take(number).batch();
  if (batch->phase() != Batch::Phase::kFinalizing) return;  // failed meanwhile
  const auto working = time_.work_for(batch->owner().user, batch->costs());
  if (!result) return fail(batch, result.error());
  complete(batch);
}

void Finalizing::complete(const BatchPtr& batch) {
  SlotPool& slots = *batch->session().parts.slots;  // or close_session() had failed the batch
  const FinalSlot& slot = batch->slot();
  counters_.add(MetricId::batches_completed, batch->session().user);
  counters_.add(MetricId::tensor_bytes, slot.order.empty() ? 0 : slot.tensor.count);
  CompletedBatch result{.id = batch->request().id, .samples = batch->count(), .failures = batch->failures()};
  if (batch->epoch() != nullptr) result.epoch = batch->epoch()->mark_after(batch->request().id);
  if (!slot.order.empty()) {
    write_records(*batch, backends_);
    result.tensor = describe_tensor(*batch);
    result.tensor->sealed_at_ns =
        slots.seal(batch->lease(), slot.tensor, result.tensor->records_offset, result.tensor->samples);
    batch->sealed();
  }
  hand_over(*batch, std::move(result));  // nothing between the seal and this: somebody waits
  batch->costs()->add({.tensors = slot.order.empty() ? Bytes{} : slot.tensor});
  counters_.add(HistogramId::batch_latency, std::chrono::duration_cast<std::chrono::microseconds>(
                                                std::chrono::steady_clock::now() - batch->admitted));
  end(batch);
}

void Finalizing::fail(const BatchPtr& batch, Error why, Bytes would_fit) {
  if (batch->over()) return;
  if (why.code == Code::kDeadline && is_unbegun(*batch)) counters_.add(MetricId::batches_shed);
  batch->fail();
  next_.dropped(batch);
  counters_.add(MetricId::batches_failed);
  FailedBatch result{.id = batch->request().id,
                     .samples = batch->count(),
                     .error = std::move(why),
                     .failures = batch->failures(),
                     .slot_bytes = would_fit};
  if (batch->epoch() != nullptr) result.stream = batch->epoch()->id();
  hand_over(*batch, std::move(result));
  if (!batch->in_flight()) end(batch);
}

void Finalizing::unused(BatchPtr batch) {
  boost::asio::post(control_, [this, batch = std::move(batch)] {
    const auto working = time_.work_for(batch->owner().user, batch->costs());
    if (batch->phase() == Batch::Phase::kFailing && !batch->in_flight()) end(batch);
  });
}

void Finalizing::hand_over(const Batch& batch, std::variant<CompletedBatch, FailedBatch> result) {
  if (!batch.session().open) return;
  BatchSink& sink = *batch.session().parts.sink;
  if (EpochRun* epoch = batch.epoch()) return epoch->ended(sink, batch.request().id, std::move(result));
  if (const auto* completed = std::get_if<CompletedBatch>(&result)) sink.completed(*completed);
  if (const auto* failed = std::get_if<FailedBatch>(&result)) sink.failed(*failed);
}

void Finalizing::end(const BatchPtr& batch) {
  const BatchEnd end = batch->phase() == Batch::Phase::kFailing ? BatchEnd::kFailed : BatchEnd::kHandedOver;
  const std::optional<SlotLease> unsealed = batch->end();
  record_end(*batch, end);
  if (unsealed && batch->session().open) batch->session().parts.slots->abandon(*unsealed);
  next_.ended(batch);
}

}  // namespace millrace
