// The order of an epoch as its client says it, part by part: batches that wait to be begun. Thread-bound(control).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/epoch.h"
#include "proto/base/ids.h"

namespace millrace {

class GivenOrder {
 public:
  struct Drawn {
    SampleId sample{};
    std::optional<std::uint64_t> draw;  // as SampleRequest::draw
  };

  // REQUIRES: not all_given(); as many samples as the sizes say. `room`: what they are charged with while they wait.
  void add(GivenBatches more, Charge room);
  bool all_given() const { return last_; }  // no part follows
  bool has_next() const { return !parts_.empty(); }
  std::vector<Drawn> next();  // the next batch. REQUIRES: has_next()

 private:
  struct Part {
    GivenBatches batches;
    Charge room;
    std::size_t batch = 0, sample = 0;  // that are next
  };

  std::deque<Part> parts_;  // none without a batch
  bool last_ = false;
};

}  // namespace millrace
