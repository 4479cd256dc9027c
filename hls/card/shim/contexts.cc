#include "hls/card/shim/contexts.h"

#include <cerrno>

namespace millrace::card {

int Contexts::open(const Client& client, unsigned unit, bool shared) {
  bool exclusive = false;
  const unsigned users = on(unit, exclusive);
  if (unit != kNoUnit && (exclusive || (!shared && users > 0))) return -EBUSY;
  Held& held = held_[{&client, unit}];
  ++held.count;
  held.exclusive = !shared && unit != kNoUnit;
  return 0;
}

int Contexts::close(const Client& client, unsigned unit) {
  const auto held = held_.find({&client, unit});
  if (held == held_.end()) return -EINVAL;
  if (--held->second.count == 0) held_.erase(held);
  return 0;
}

void Contexts::close_all(const Client& client) {
  std::erase_if(held_, [&](const auto& entry) { return entry.first.first == &client; });
}

std::uint32_t Contexts::units_of(const Client& client) const {
  std::uint32_t units = 0;
  for (const auto& [key, held] : held_)
    if (key.first == &client && key.second < kMostUnits) units |= std::uint32_t{1} << key.second;
  return units;
}

unsigned Contexts::on(unsigned unit, bool& exclusive) const {
  unsigned users = 0;
  for (const auto& [key, held] : held_) {
    if (key.second != unit) continue;
    users += held.count;
    exclusive |= held.exclusive;
  }
  return users;
}

}  // namespace millrace::card
