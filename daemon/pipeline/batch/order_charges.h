// What users are charged for the orders of their epochs: each order once, however many of a user's sessions run it, for
// the daemon works it out and keeps it once (plan/known_orders.h). Thread-bound(control).
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "daemon/admit/ledger.h"
#include "daemon/model/epoch.h"
#include "proto/base/result.h"

namespace millrace {

class OrderCharges {
 public:
  // `sample_bytes`: what is kept of each sample of a shuffled epoch.
  explicit OrderCharges(std::uint64_t sample_bytes) : sample_bytes_(sample_bytes) {}

  // Before it is worked out. Shared by the user's sessions. kExhausted: no room.
  Result<std::shared_ptr<const Charge>> charge(Account& account, const EpochOrderSpec& spec);

 private:
  using Key = std::tuple<UserId, std::uint64_t, std::uint64_t, std::uint64_t,  // and samples, seed, epoch,
                         std::uint32_t, std::uint32_t>;                        // block_samples, window_blocks

  const std::uint64_t sample_bytes_;
  std::map<Key, std::weak_ptr<const Charge>> known_;
};

}  // namespace millrace
