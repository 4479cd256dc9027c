// Who uses which dataset, and in which order: what a session's epochs tell of themselves while they run, so that a
// cache that keeps something of a dataset's files knows when each is wanted next. Times are seconds of a steady clock.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/model/epoch.h"
#include "daemon/model/files/dataset.h"

namespace millrace {

// Where in an epoch's order each sample of the dataset comes, over all ranks. Immutable; 4 bytes a sample where the
// epoch is shuffled.
class EpochPositions {
 public:
  EpochPositions() = default;  // in the order of the listing
  explicit EpochPositions(std::vector<std::uint32_t> positions) : positions_(std::move(positions)) {}

  // REQUIRES: where it is shuffled, `sample` is less than the samples of the dataset.
  std::uint64_t of(std::uint32_t sample) const { return positions_.empty() ? sample : positions_[sample]; }

 private:
  std::vector<std::uint32_t> positions_;
};

// An epoch that begins. `positions` are its own, `next` are those of the epoch that is expected after it. Shared by the
// ranks of a job; nullptr: not known, or not yet.
struct EpochBegun {
  EpochOrderSpec order;
  std::uint64_t samples = 0;  // of its rank
  std::uint64_t reached = 0;  // where it begins, in samples of its rank
  std::shared_ptr<const EpochPositions> positions;
  std::shared_ptr<const EpochPositions> next;
};

// One session's epochs over one dataset. It lasts until it is destroyed, between epochs as well: the next one is
// expected. Calls come from one thread at a time.
class DatasetUse {
 public:
  virtual ~DatasetUse() = default;

  virtual void epoch_begun(EpochBegun epoch, double now) = 0;
  // The order of the epoch that is expected after this one, once it is worked out.
  virtual void foreseen(std::shared_ptr<const EpochPositions> next) = 0;
  virtual void reached(std::uint64_t samples) = 0;  // of the rank's, so many have been asked for; cheap
  virtual void epoch_ended(double now) = 0;         // to its end or not
};

class DatasetUses {
 public:
  virtual ~DatasetUses() = default;

  // Not null; outlived by this object. Thread-safe.
  virtual std::unique_ptr<DatasetUse> begin(const Dataset& dataset) = 0;
};

}  // namespace millrace
