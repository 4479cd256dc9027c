#include "daemon/publish/publisher.h"

#include <optional>
#include <utility>

#include "daemon/publish/messages.h"

namespace millrace {

void Publisher::send(v1::ServerMessage message) {
  if (port_ != nullptr) port_->send(std::move(message));
}

void Publisher::ending() {
  if (port_ != nullptr) port_->send_early_wake_up();
}

void Publisher::completed(const CompletedBatch& batch) {
  if (port_ == nullptr) {
    if (!batch.tensor) return;
    const Result<void> released = slots_.release(raw(batch.tensor->slot), raw(batch.tensor->generation));
    MILLRACE_CHECK(released.has_value());  // sealed by the pipeline a moment ago, and nobody else knows of it
    return;
  }
  port_->send(completed_message(batch));
  if (batch.tensor) states_.handed_over(raw(batch.tensor->slot));
  ++counts_.batches;
  counts_.samples += batch.tensor ? batch.tensor->samples : 0;
  counts_.tensors += batch.tensor ? batch.tensor->bytes : Bytes{};
  counts_.bad_samples += batch.failures.size();
}

void Publisher::failed(const FailedBatch& batch) {
  counts_.bad_samples += batch.failures.size();
  send(failed_message(batch));
}

void Publisher::epoch_started(EpochStreamId stream, std::uint64_t batches, std::uint64_t first_batch,
                              std::uint64_t samples) {
  send(epoch_started_message(stream, batches, first_batch, samples));
}

void Publisher::epoch_failed(EpochStreamId stream, const Error& error) {
  send(epoch_failed_message(stream, error));
}

void Publisher::epoch_given_up(EpochStreamId stream, const Error& error, const SampleFailure& example) {
  send(epoch_given_up_message(stream, error, example));
}

void Publisher::epoch_ended(EpochStreamId stream) {
  send(epoch_ended_message(stream));
}

}  // namespace millrace
