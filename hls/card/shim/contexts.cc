#include "hls/card/shim/contexts.h"

#include <algorithm>
#include <cerrno>

#include "hls/card/shim/control.h"

namespace millrace::card {

int Contexts::open(const Client& client, unsigned unit, bool shared) {
  if (unit != kNoUnit && clashes(unit, shared)) return -EBUSY;
  Held& held = held_[{&client, unit}];
  ++held.count;
  held.exclusive = !shared && unit != kNoUnit;
  publish();
  return 0;
}

int Contexts::close(const Client& client, unsigned unit) {
  const auto held = held_.find({&client, unit});
  if (held == held_.end()) return -EINVAL;
  if (--held->second.count == 0) held_.erase(held);
  publish();
  return 0;
}

void Contexts::close_all(const Client& client) {
  std::erase_if(held_, [&](const auto& entry) { return entry.first.first == &client; });
  publish();
}

bool Contexts::any() const {
  return !held_.empty() || any_of_others();
}

bool Contexts::any_of_others() const {
  const UnitUse others = others_use_of(card_);
  return std::any_of(others.contexts.begin(), others.contexts.end(), [](std::uint8_t count) { return count > 0; });
}

std::uint32_t Contexts::units_of(const Client& client) const {
  std::uint32_t units = 0;
  for (const auto& [key, held] : held_)
    if (key.first == &client && key.second < kMostUnits) units |= std::uint32_t{1} << key.second;
  return units;
}

bool Contexts::clashes(unsigned unit, bool shared) const {
  const UnitUse others = others_use_of(card_);
  unsigned users = others.contexts[unit];
  bool exclusive = others.exclusive >> unit & 1;
  for (const auto& [key, held] : held_) {
    if (key.second != unit) continue;
    users += held.count;
    exclusive |= held.exclusive;
  }
  return exclusive || (!shared && users > 0);
}

void Contexts::publish() const {
  UnitUse use{};
  for (const auto& [key, held] : held_) {
    std::uint8_t& count = use.contexts[std::min(key.second, kMostUnits)];
    count = static_cast<std::uint8_t>(std::min(255u, count + held.count));
    if (held.exclusive) use.exclusive |= std::uint32_t{1} << key.second;
  }
  own_use_of(card_) = use;
}

}  // namespace millrace::card
