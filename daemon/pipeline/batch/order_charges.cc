#include "daemon/pipeline/batch/order_charges.h"

#include <utility>

namespace millrace {

Result<std::shared_ptr<const Charge>> OrderCharges::charge(Account& account, const EpochOrderSpec& spec) {
  if (spec.shuffle == Shuffle::kNo) return std::shared_ptr<const Charge>();
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  const Key key{account.owner().user, spec.samples, spec.seed, spec.epoch, spec.block_samples, spec.window_blocks};
  if (const auto known = known_.find(key); known != known_.end()) return known->second.lock();
  MILLRACE_TRY(Charge charge, account.charge(Resource::kRequests, sample_bytes_ * spec.samples));
  auto shared = std::make_shared<const Charge>(std::move(charge));
  known_.emplace(key, shared);
  return std::shared_ptr<const Charge>(std::move(shared));
}

}  // namespace millrace
