// Who uses which compute units of a card, and whether alone. A context of no unit is one of the card itself.
//
// Thread-bound(its card's lock).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "hls/card/wire.h"

namespace millrace::card {

class Client;

class Contexts {
 public:
  static constexpr unsigned kNoUnit = ~0u;

  // 0 or a negative errno: another's exclusive use, or any use where this one is to be exclusive, is -EBUSY.
  int open(const Client& client, unsigned unit, bool shared);
  int close(const Client& client, unsigned unit);
  void close_all(const Client& client);

  bool any() const { return !held_.empty(); }
  // The bits of the units that this client may start commands on.
  std::uint32_t units_of(const Client& client) const;

 private:
  struct Held {
    unsigned count = 0;
    bool exclusive = false;
  };

  unsigned on(unsigned unit, bool& exclusive) const;

  std::map<std::pair<const Client*, unsigned>, Held> held_;
};

}  // namespace millrace::card
