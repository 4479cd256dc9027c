// The positions of epochs, worked out once for all who need them at the same time: the ranks of a job, and an epoch that
// was foreseen when it begins. Kept for as long as somebody has them. Thread-bound(its owner).
#pragma once

#include <memory>
#include <vector>

#include "daemon/plan/epoch_order.h"

namespace millrace {

class KnownPositions {
 public:
  // Of an order that is at hand, and of one that is worked out for it. nullptr: no memory for them, or no such order.
  std::shared_ptr<const EpochPositions> of(const EpochOrderSpec& spec, const EpochOrder& order);
  std::shared_ptr<const EpochPositions> of(const EpochOrderSpec& spec);

 private:
  struct Known {
    EpochOrderSpec spec;
    std::weak_ptr<const EpochPositions> positions;
  };
  std::shared_ptr<const EpochPositions> find(const EpochOrderSpec& spec);
  std::shared_ptr<const EpochPositions> keep(const EpochOrderSpec& spec, EpochPositions positions);

  std::vector<Known> known_;
};

}  // namespace millrace
