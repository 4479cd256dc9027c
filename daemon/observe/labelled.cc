#include "daemon/observe/labelled.h"

#include <algorithm>

namespace millrace {

LabelValue Labelled::value_of(std::string_view value) {
  MutexLock lock(mutex_);
  const auto found = std::find(values_.begin(), values_.end(), value);
  const auto place = static_cast<std::size_t>(found - values_.begin());
  if (found == values_.end() && place < kOther) values_.emplace_back(value);
  return static_cast<LabelValue>(place);  // kOther, once all others are taken
}

std::vector<LabelledCount> Labelled::counts() const {
  std::vector<LabelledCount> counts;
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < values_.size(); ++i)
    counts.push_back({values_[i], cells_[i].load(std::memory_order_relaxed)});
  if (const std::int64_t others = cells_[kOther].load(std::memory_order_relaxed); others != 0)
    counts.push_back({"other", others});
  return counts;
}

}  // namespace millrace
