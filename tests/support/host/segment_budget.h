// What segments of a test may have: a ledger of its own, and what is promised. Outlives its segments. Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "daemon/admit/ledger.h"
#include "daemon/memory/segment.h"

namespace millrace {

class SegmentBudget {
 public:
  explicit SegmentBudget(Bytes limit) : ledger_(budgets_of({}, {.segments = limit})) {}

  Result<Charge> charge(Bytes size) { return ledger_.charge(Resource::kSegments, Owner{}, size.count); }
  Result<std::shared_ptr<Segment>> reserve(Bytes size) {
    MILLRACE_TRY(Charge charged, charge(size));
    return Segment::reserve(std::move(charged), promised_);
  }
  Result<std::shared_ptr<Segment>> create(Bytes size) {
    MILLRACE_TRY(Charge charged, charge(size));
    return Segment::create(std::move(charged), promised_);
  }

  Bytes used() const { return {ledger_.in_use(Resource::kSegments)}; }
  Bytes promised() const { return promised_.bytes(); }
  PromisedMemory& promises() { return promised_; }

 private:
  Ledger ledger_;
  PromisedMemory promised_;
};

}  // namespace millrace
