// Which samples make which batch of an epoch: shuffled (Fisher-Yates over RandomStream, or in blocks), sharded by rank (rank, rank +
// world, ...), cut into batches. Exact and stable: a function of EpochOrderSpec alone. Immutable after create(); 4
// bytes a sample of the whole dataset where it is shuffled, which copies and other ranks' orders share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "daemon/model/epoch.h"
#include "daemon/model/files/dataset_use.h"
#include "proto/base/ids.h"
#include "proto/base/result.h"

namespace millrace {

// The same for the whole dataset: of two that are equal, one shuffle serves both, for neither rank nor batches matter.
EpochOrderSpec whole_of(const EpochOrderSpec& spec);

class EpochOrder {
 public:
  using Shuffled = std::vector<std::uint32_t>;  // the sample at each position

  // kInvalid naming the field: batch_size 0, rank not below world_size, no samples for this rank. kExhausted: no memory.
  // `known`: the shuffle of an order with the same whole_of(); null: it is worked out.
  static Result<EpochOrder> create(const EpochOrderSpec& spec, std::shared_ptr<const Shuffled> known = nullptr);

  // Null: not shuffled. Shared by orders with the same whole_of().
  const std::shared_ptr<const Shuffled>& shuffled() const { return order_; }

  std::uint64_t samples() const;  // of this rank: with padding, without those that are dropped
  std::uint64_t batches() const;
  std::vector<SampleId> batch(std::uint64_t index) const;  // REQUIRES: index < batches()

  // Where each sample of the dataset comes, over all ranks. Throws std::bad_alloc as `new` does.
  EpochPositions positions() const;

 private:
  explicit EpochOrder(const EpochOrderSpec& spec) : spec_(spec) {}

  EpochOrderSpec spec_;
  std::shared_ptr<const Shuffled> order_;  // see shuffled()
  std::uint64_t samples_ = 0;
};

// The shuffles of epochs, worked out once for all who need them at the same time: the ranks of a job, and sessions that
// run the same epoch. Kept for as long as somebody has one of their orders. Thread-bound(its owner).
class KnownOrders {
 public:
  // As EpochOrder::create().
  Result<EpochOrder> of(const EpochOrderSpec& spec);

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>;

  static Key key_of(const EpochOrderSpec& spec);

  std::map<Key, std::weak_ptr<const EpochOrder::Shuffled>> known_;
};

}  // namespace millrace
