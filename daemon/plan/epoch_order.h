// Which samples make which batch of an epoch: shuffled (Fisher-Yates over RandomStream), sharded by rank (rank, rank +
// world, ...), cut into batches. Exact and stable: a function of EpochOrderSpec alone. Immutable after create(); 4
// bytes a sample of the whole dataset where it is shuffled.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/dataset_use.h"
#include "daemon/model/epoch.h"
#include "proto/base/ids.h"
#include "proto/base/result.h"

namespace millrace {

class EpochOrder {
 public:
  // kInvalid naming the field: batch_size 0, rank not below world_size, no samples for this rank.
  static Result<EpochOrder> create(const EpochOrderSpec& spec);

  std::uint64_t samples() const;  // of this rank: with padding, without those that are dropped
  std::uint64_t batches() const;
  std::vector<SampleId> batch(std::uint64_t index) const;  // REQUIRES: index < batches()

  // Where each sample of the dataset comes, over all ranks. Throws std::bad_alloc as `new` does.
  EpochPositions positions() const;

 private:
  explicit EpochOrder(const EpochOrderSpec& spec) : spec_(spec) {}

  EpochOrderSpec spec_;
  std::vector<std::uint32_t> order_;  // of the whole dataset; empty: not shuffled
  std::uint64_t samples_ = 0;
};

}  // namespace millrace
