#include "daemon/pipeline/epoch/epoch_run.h"

#include <algorithm>
#include <utility>

namespace millrace {

EpochRun::EpochRun(EpochRequest request, std::optional<EpochOrder> order, EpochCharges charges)
    : request_(std::move(request)), order_(std::move(order)), charges_(std::move(charges)) {
  if (!order_) return;
  next_ = delivered_ = std::min(request_.first_batch, order_->batches());
  const std::uint64_t left = order_->batches() - next_;
  end_ = next_ + (request_.batches == 0 ? left : std::min(left, request_.batches));
  if (request_.order.block_samples > 1 && request_.dataset->has_ranges())
    blocks_begun_.resize(request_.order.samples / request_.order.block_samples + 1);
}

void EpochRun::announce(BatchSink& sink) const {
  sink.epoch_started(id(), order_ ? order_->batches() : 0, next_, samples());
}

std::optional<BatchRequest> EpochRun::next() {
  if (stopped_ || !has_another()) return std::nullopt;
  BatchRequest batch{.id = BatchId{next_},
                     .recipe = request_.recipe,
                     .seed = request_.order.seed,
                     .epoch = request_.order.epoch,
                     .on_error = request_.on_error,
                     .guard = request_.guard,
                     .fidelity = request_.fidelity,
                     .priority = request_.priority,
                     .backend = request_.backend};
  const std::vector<GivenOrder::Drawn> samples = next_samples();
  batch.samples.reserve(samples.size());
  for (const auto& [sample, draw] : samples) {
    batch.samples.push_back(SampleRequest{.id = sample,
                                          .label = request_.dataset->label(sample),
                                          .source = DatasetSource{request_.dataset, sample, block_to_read(sample)},
                                          .draw = draw});
  }
  ++next_;
  return batch;
}

std::vector<GivenOrder::Drawn> EpochRun::next_samples() {
  std::vector<GivenOrder::Drawn> samples;
  if (!order_) {
    samples = given_.next();
    given_begun_ += samples.size();
    return samples;
  }
  for (const SampleId sample : order_->batch(next_)) samples.push_back({sample, std::nullopt});
  return samples;
}

std::uint32_t EpochRun::block_to_read(SampleId sample) {
  if (blocks_begun_.empty()) return 0;
  const std::uint64_t block = raw(sample) / request_.order.block_samples;
  if (blocks_begun_[block]) return 0;
  blocks_begun_[block] = true;
  return request_.order.block_samples;
}

EpochMark EpochRun::mark_after(BatchId batch) const {
  return EpochMark{id(), request_.order_by, request_.order, request_.dataset->fingerprint(), raw(batch) + 1};
}

void EpochRun::interrupt(Error why) {
  stopped_ = true;
  if (!has_pushed_all() && !interrupted_) interrupted_ = std::move(why);
}

void EpochRun::break_off(Error why) {
  stopped_ = true;
  if (!interrupted_) interrupted_ = std::move(why);
}

void EpochRun::say_goodbye(BatchSink& sink) const {
  if (example_) return sink.epoch_given_up(id(), *interrupted_, *example_);
  if (interrupted_) return sink.epoch_failed(id(), *interrupted_);
  sink.epoch_ended(id());
}

void EpochRun::ended(BatchSink& sink, BatchId batch, std::variant<CompletedBatch, FailedBatch> result) {
  held_.emplace(raw(batch), std::move(result));
  while (!held_.empty() && held_.begin()->first == delivered_) {
    const auto next = held_.extract(held_.begin());
    ++delivered_;
    if (const auto* completed = std::get_if<CompletedBatch>(&next.mapped())) {
      sink.completed(*completed);
      count(completed->samples, completed->failures);
    }
    if (const auto* failed = std::get_if<FailedBatch>(&next.mapped())) {
      sink.failed(*failed);
      if (failed->failures.size() == failed->samples) count(failed->samples, failed->failures);  // else not by them
    }
  }
}

void EpochRun::count(std::uint32_t samples, const std::vector<SampleFailure>& bad) {
  if (request_.guard == Guard::kOff || interrupted_) return;
  std::optional<Error> too_many = guard_.count(samples, bad);
  if (!too_many) return;
  break_off(*std::move(too_many));
  example_ = bad.front();
}

}  // namespace millrace
