// What one session's client has asked for and no slot was free for: the batches that it submitted, and its epochs, which
// give a batch whenever a slot is free.
//
//   submit() ──▶ waits ──next()──▶ (the slot's)
//                  └── its deadline passes, or somebody wants it gone: Next::fail(), then remove()
//   plan() ──▶ being shuffled ──planned()──▶ epoch ──next()──▶ (a batch of it, the slot's) ... ──retire()──▶ over
//   begin_given() ──▶ epoch ──give()──next()──give()──next()──▶ ... ──retire()──▶ over
//
// Submitted batches go before epochs', the most urgent first; epochs take turns. Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/model/epoch.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/order_charges.h"
#include "daemon/pipeline/epoch/epoch_run.h"
#include "daemon/pipeline/epoch/session_uses.h"
#include "daemon/place/placer.h"
#include "proto/base/result.h"

namespace millrace {

class Waiting {
 public:
  class Next {
   public:
    virtual ~Next() = default;
    virtual void fail(const BatchPtr& batch, Error why, Bytes would_fit = {}) = 0;
  };
  // All of it outlives every session.
  struct Surroundings {
    boost::asio::io_context& control;
    InForce<Limits> limits;
    const Placer& placer;
    const Batch::Surroundings& batches;
    Next& next;
    OrderCharges& orders;
    DatasetUses* uses = nullptr;  // told of epochs; may be null
  };

  Waiting(std::shared_ptr<OpenSession> session, const Surroundings& around)
      : session_(std::move(session)), around_(around), uses_(around.uses) {}

  // The batch waits, and `room`, what its request is charged with, is kept as long as it is; its deadline counts until it has ended, with or without a slot. kInvalid naming the field,
  // kExhausted (too many wait, or too large for a slot), kNotFound (pinned backend): then nothing waits.
  Result<void> submit(BatchRequest request, Charge room);
  BatchPtr find(BatchId submitted) const;  // that waits; null: none
  const std::deque<BatchPtr>& batches() const { return batches_; }
  void remove(const BatchPtr& batch);

  // Whether the epoch may begin, which is then being shuffled until planned(): its sink is told what is wrong otherwise.
  [[nodiscard]] bool plan(const EpochRequest& request);
  // `positions`: of the order; nullptr: not known. The order that is worth working out next, for foreseen(); nullopt: none.
  std::optional<EpochOrderSpec> planned(EpochRequest request, Result<EpochOrder> order,
                                        std::shared_ptr<const EpochPositions> positions);
  // An epoch whose order its client says: as plan() and planned().
  void begin_given(EpochRequest request);
  // What is wrong with them breaks it off. Nothing happens if there is no such epoch.
  void give(EpochStreamId stream, Result<GivenBatches> batches_untrusted);
  void foreseen(EpochStreamId stream, std::shared_ptr<const EpochPositions> next);
  void stop(EpochStreamId stream);   // gives no batch any more
  void interrupt(const Error& why);  // likewise all of them: those that had more say why at their end
  void retire();                     // those that have handed over everything say so, and are gone

  // What it waits for, where no batch of it has a slot: a slot; the order of an epoch; what its client gives for one.
  bool wants_slot() const;
  bool is_shuffling() const { return !planning_.empty(); }
  bool is_to_be_given() const;

  // The batch that a free slot is for; null: none. An epoch that the limits do not allow any more breaks off: retire().
  BatchPtr next();

 private:
  enum class Planned : std::uint8_t { kWanted, kStopped };
  struct Planning {
    EpochCharges charges;
    Planned state = Planned::kWanted;
    std::optional<Error> wrong = std::nullopt;  // with what was said of it meanwhile
  };

  Result<BatchPtr> new_batch(BatchRequest request, std::shared_ptr<EpochRun> epoch);
  BatchPtr next_of(const std::shared_ptr<EpochRun>& epoch);
  Result<void> check(const EpochRequest& request) const;
  Result<void> check_size(const EpochRequest& request) const;
  Result<EpochCharges> charge(const EpochRequest& request);
  Result<void> take_given(EpochRun& epoch, Result<GivenBatches> batches_untrusted);
  void watch_deadline(const BatchPtr& batch);

  const std::shared_ptr<OpenSession> session_;  // shared with its batches
  const Surroundings around_;
  std::deque<BatchPtr> batches_;                   // submitted, without a slot
  std::vector<std::shared_ptr<EpochRun>> epochs_;  // taking turns; shared with their batches
  std::map<EpochStreamId, Planning> planning_;     // being shuffled
  SessionUses uses_;
};

}  // namespace millrace
