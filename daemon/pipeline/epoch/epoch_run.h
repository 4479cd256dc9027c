// One epoch being pushed: which batch comes next, and results handed over in order although batches finish out of
// order. Which samples make which batch is the daemon's order, or what the client gives bit by bit.
// Thread-bound(control).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/batch_request.h"
#include "daemon/model/batch_sink.h"
#include "daemon/model/epoch.h"
#include "daemon/pipeline/batch/bad_sample_guard.h"
#include "daemon/pipeline/epoch/given_order.h"
#include "daemon/plan/epoch_order.h"

namespace millrace {

// What an epoch is charged with until the last of its batches has ended.
struct EpochCharges {
  Charge epoch;
  Charge batches;
  std::shared_ptr<const Charge> order;  // shared: see OrderCharges; null: it is not shuffled
};

class EpochRun {
 public:
  // `order`: nullopt where the client gives it (EpochRequest::order_by).
  EpochRun(EpochRequest request, std::optional<EpochOrder> order, EpochCharges charges = {});

  const EpochRequest& request() const { return request_; }
  EpochStreamId id() const { return request_.id; }
  void announce(BatchSink& sink) const;
  // In samples, of the whole epoch (0: not known) and from its start on.
  std::uint64_t samples() const { return order_ ? order_->samples() : 0; }
  std::uint64_t samples_begun() const {
    return order_ ? std::min(next_ * request_.order.batch_size, order_->samples()) : given_begun_;
  }

  // What the client gives, and whether that is all. REQUIRES: the order is the client's, and not all_given().
  void give(GivenBatches batches, Charge room) { given_.add(std::move(batches), std::move(room)); }
  bool all_given() const { return given_.all_given(); }

  // There is a next batch, and fewer than `most` are under way or wait to be handed over.
  bool has_next(std::uint64_t most) const { return !stopped_ && has_another() && next_ - delivered_ < most; }
  // The next batch's request; nullopt when there is none left, or none yet, or the epoch was stopped.
  std::optional<BatchRequest> next();
  // The mark that resumes after batch `batch`.
  EpochMark mark_after(BatchId batch) const;

  void stop() { stopped_ = true; }
  void interrupt(Error why);  // stops, and says so at the end unless it has pushed everything
  void break_off(Error why);  // stops, and says so at the end in any case; of several reasons the first one

  // A batch ended: its result goes to `sink` now, or when those before it have. Breaks off where the guard says so.
  void ended(BatchSink& sink, BatchId batch, std::variant<CompletedBatch, FailedBatch> result);

  // Nothing left to push and every result handed over.
  bool over() const { return (stopped_ || has_pushed_all()) && delivered_ == next_; }
  void say_goodbye(BatchSink& sink) const;  // REQUIRES: over()

 private:
  bool has_another() const { return order_ ? next_ != end_ : given_.has_next(); }
  bool has_pushed_all() const { return order_ ? next_ == end_ : given_.all_given() && !given_.has_next(); }
  std::vector<GivenOrder::Drawn> next_samples();
  std::uint32_t block_to_read(SampleId sample);  // DatasetSource::block_samples
  void count(std::uint32_t samples, const std::vector<SampleFailure>& bad);

  EpochRequest request_;
  std::optional<EpochOrder> order_;  // nullopt: given_
  GivenOrder given_;
  std::uint64_t given_begun_ = 0;   // samples of it
  std::vector<bool> blocks_begun_;  // of an epoch in blocks of parts; charged with the epoch's batches
  const EpochCharges charges_;
  std::uint64_t next_ = 0;       // batch to begin
  std::uint64_t end_ = 0;        // one past the last, of order_
  std::uint64_t delivered_ = 0;  // all before it are handed over
  bool stopped_ = false;
  BadSampleGuard guard_;
  std::optional<SampleFailure> example_;  // of what the guard has found
  std::optional<Error> interrupted_;
  // Finished before their turn: fewer than has_next() was asked for.
  std::map<std::uint64_t, std::variant<CompletedBatch, FailedBatch>> held_;
};

}  // namespace millrace
