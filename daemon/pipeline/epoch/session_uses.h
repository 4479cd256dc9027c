// What a session's epochs tell of the datasets that they run over, to the cache (model/files/dataset_use.h).
// Thread-bound(control).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/epoch.h"
#include "daemon/model/files/dataset_use.h"

namespace millrace {

class SessionUses {
 public:
  // `uses`, which may be null, outlives it.
  explicit SessionUses(DatasetUses* uses) : uses_(uses) {}

  // An epoch began; `charge`, which may be null, is for its positions, and kept as long as these. What is expected after it: the same with the next number, or, if the session counts in other steps,
  // the one after as many; nullopt: nobody wants to know, or nobody can.
  std::optional<EpochOrderSpec> begin(EpochStreamId stream, const Dataset& dataset, EpochBegun epoch, double now,
                                      std::shared_ptr<const Charge> charge = nullptr);
  void foreseen(EpochStreamId stream, std::shared_ptr<const EpochPositions> next);
  void reached(EpochStreamId stream, std::uint64_t samples);
  void ended(EpochStreamId stream, double now);

 private:
  static constexpr std::size_t kMost = 16;  // datasets of a session between epochs; the one used longest ago goes

  struct Row {
    DatasetNumber dataset = DatasetNumber::kNone;
    std::uint64_t fingerprint = 0;
    std::shared_ptr<const Charge> charge;  // shared: see OrderCharges
    std::unique_ptr<DatasetUse> use;
    std::optional<EpochStreamId> running;
    EpochOrderSpec order;  // of the epoch that runs, or ran last
  };

  Row* find(EpochStreamId stream);

  DatasetUses* const uses_;
  std::vector<Row> rows_;  // in the order in which their last epochs began
};

}  // namespace millrace
