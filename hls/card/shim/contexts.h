// Who uses which compute units of a card, and whether alone: this process's clients, and other processes by the control
// file. A context of no unit is one of the card itself.
//
// Thread-bound(its card's lock). Functions that say so need a CardLock as well.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "hls/card/wire.h"

namespace millrace::card {

class Client;

class Contexts {
 public:
  static constexpr unsigned kNoUnit = ~0u;

  explicit Contexts(unsigned card) : card_(card) {}

  // 0 or a negative errno: another's exclusive use, or any use where this one is to be exclusive, is -EBUSY. REQUIRES: a
  // CardLock, as for all that changes them.
  int open(const Client& client, unsigned unit, bool shared);
  int close(const Client& client, unsigned unit);
  void close_all(const Client& client);

  // Anybody's, of any process. REQUIRES: a CardLock.
  bool any() const;
  bool any_of_others() const;
  // The bits of the units that this client may start commands on.
  std::uint32_t units_of(const Client& client) const;

 private:
  struct Held {
    unsigned count = 0;
    bool exclusive = false;
  };

  bool clashes(unsigned unit, bool shared) const;
  void publish() const;

  const unsigned card_;
  std::map<std::pair<const Client*, unsigned>, Held> held_;
};

}  // namespace millrace::card
