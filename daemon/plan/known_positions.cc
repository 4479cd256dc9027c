#include "daemon/plan/known_positions.h"

#include <algorithm>
#include <new>
#include <utility>

namespace millrace {

std::shared_ptr<const EpochPositions> KnownPositions::of(const EpochOrderSpec& spec, const EpochOrder& order) {
  try {
    if (auto known = find(spec)) return known;
    return keep(spec, order.positions());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::shared_ptr<const EpochPositions> KnownPositions::of(const EpochOrderSpec& spec) {
  try {
    if (auto known = find(spec)) return known;
    const Result<EpochOrder> order = EpochOrder::create(whole_of(spec));
    return order ? keep(spec, order->positions()) : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::shared_ptr<const EpochPositions> KnownPositions::find(const EpochOrderSpec& spec) {
  std::erase_if(known_, [](const Known& known) { return known.positions.expired(); });
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.spec == whole_of(spec); });
  return found == known_.end() ? nullptr : found->positions.lock();
}

std::shared_ptr<const EpochPositions> KnownPositions::keep(const EpochOrderSpec& spec, EpochPositions positions) {
  auto kept = std::make_shared<const EpochPositions>(std::move(positions));
  known_.push_back({whole_of(spec), kept});
  return kept;
}

}  // namespace millrace
