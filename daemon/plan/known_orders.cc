#include "daemon/plan/known_orders.h"

namespace millrace {

Result<EpochOrder> KnownOrders::of(const EpochOrderSpec& spec) {
  if (spec.shuffle == Shuffle::kNo) return EpochOrder::create(spec);
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const EpochOrder::Shuffled>& known = known_[{spec.samples, spec.seed, spec.epoch}];
  Result<EpochOrder> order = EpochOrder::create(spec, known.lock());
  if (order) known = order->shuffled();
  return order;
}

}  // namespace millrace
