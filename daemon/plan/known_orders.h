// The shuffles of epochs, worked out once for all who need them at the same time: the ranks of a job, and sessions that
// run the same epoch. Kept for as long as somebody has one of their orders. Thread-bound(its owner).
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "daemon/plan/epoch_order.h"

namespace millrace {

class KnownOrders {
 public:
  // As EpochOrder::create().
  Result<EpochOrder> of(const EpochOrderSpec& spec);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // samples, seed, epoch

  std::map<Key, std::weak_ptr<const EpochOrder::Shuffled>> known_;
};

}  // namespace millrace
