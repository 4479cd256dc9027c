// How a batch ends: all its samples are back, its slot is finalized, sealed and handed over; or it fails, and its client is
// told at once. Every batch goes through here on its way out, whatever became of it.
//
//   finalize() ──▶ error policy ──▶ the arena ──▶ sealed ──▶ handed over ──▶ Next::ended()
//   fail() ──▶ handed over ──▶ nobody writes to its slot any more ──▶ slot back ──▶ Next::ended()
//
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/error_policy.h"
#include "daemon/pipeline/epoch/outstanding.h"
#include "daemon/pipeline/turns/control_time.h"

namespace millrace {

class Finalizing : public Batch::Owner {
 public:
  class Next {
   public:
    virtual ~Next() = default;
    virtual void dropped(const BatchPtr& batch) = 0;  // it fails: what waits of it goes
    virtual void ended(const BatchPtr& batch) = 0;    // its slot is sealed or free
  };

  // `backends`: their names, by number. Everything outlives it.
  Finalizing(boost::asio::io_context& control, std::span<const std::string> backends, ControlTime& time,
             Counters& counters, Next& next)
      : control_(control), backends_(backends), time_(time), counters_(counters), next_(next) {}

  // After every change: does the batch end now?
  void finalize(const BatchPtr& batch);

  // Nothing happens to one that has failed or ended. `would_fit`: the slot bytes with which it could be had, if it is
  // for want of them.
  void fail(const BatchPtr& batch, Error why, Bytes would_fit = {});

  void unused(BatchPtr batch) override;

 private:
  Result<FinalSlot> final_slot(const Batch& batch) const;
  void finalized(std::uint32_t number, const Result<void>& result);
  void complete(const BatchPtr& batch);
  void hand_over(const Batch& batch, std::variant<CompletedBatch, FailedBatch> result);
  void end(const BatchPtr& batch);

  boost::asio::io_context& control_;
  const std::span<const std::string> backends_;
  ControlTime& time_;
  Counters& counters_;
  Next& next_;
  Outstanding<InFlight> finalizing_;  // at their arenas
};

}  // namespace millrace
