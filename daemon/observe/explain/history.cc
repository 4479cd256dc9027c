#include "daemon/observe/explain/history.h"

#include <cmath>

#include "daemon/observe/explain/waited.h"

namespace millrace {

void SessionHistory::add(const SessionLook& look) {
  const SessionLook& before = looks_.newest();
  const std::chrono::duration<double> passed = look.at - before.at;
  if (passed.count() <= 0) return;
  images_[next_] = static_cast<float>(static_cast<double>(look.images - before.images) / passed.count());
  waited_[next_] = static_cast<std::uint8_t>(std::lround(255 * waited_between(before, look).share()));
  next_ = (next_ + 1) % kPlotted;
  plotted_ = std::min(plotted_ + 1, kPlotted);
  looks_.add(look);
}

std::vector<float> SessionHistory::images_per_second() const {
  std::vector<float> values;
  for (std::size_t i = plotted_; i > 0; --i) values.push_back(images_[(next_ + kPlotted - i) % kPlotted]);
  return values;
}

std::vector<float> SessionHistory::waited() const {
  std::vector<float> values;
  for (std::size_t i = plotted_; i > 0; --i)
    values.push_back(static_cast<float>(waited_[(next_ + kPlotted - i) % kPlotted]) / 255);
  return values;
}

}  // namespace millrace
