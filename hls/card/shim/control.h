// What all processes on one host with simulated cards share: the file that MILLRACE_CARD_CONTROL names (none: a page of
// this process alone). All zero is a good beginning. Each process holds a lock on a byte of the file: the kernel lets go
// of it with the process, however that ends, and what it used of a card is free again.
//
// Thread-safe, and safe between processes, but for what is said to need a CardLock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "hls/card/shim/settings.h"
#include "hls/card/wire.h"

namespace millrace::card {

// A process's use of a card's units: how many contexts it has of each, and of which it is the only user. REQUIRES: a
// CardLock, to read or to write it.
struct UnitUse {
  std::array<std::uint8_t, kMostUnits + 1> contexts;  // the last: of no unit
  std::uint32_t exclusive;
};

struct CardControl {
  // Written by millrace-card as well.
  std::atomic<std::uint32_t> harm;  // a Harm for the next command, which takes it away
  std::atomic<std::uint32_t> harm_amount;
  std::atomic<std::uint32_t> refusals;    // programmings still to be refused
  std::atomic<std::uint64_t> away_until;  // milliseconds of the monotonic clock; until then the card cannot be opened
  std::atomic<std::uint32_t> celsius, milliwatt;  // 0: as usual
  std::atomic<std::uint64_t> commands;            // started so far

  // What the card is programmed with. REQUIRES: a CardLock.
  bool programmed;
  std::array<unsigned char, 16> uuid;
};

// Never fail: a file that cannot be used ends the process.
CardControl& control_of(unsigned card);
UnitUse& own_use_of(unsigned card);
// Of all other processes that live, taken together.
UnitUse others_use_of(unsigned card);

// As long as it lives, no other process has one of this card; two threads of a process may. Thread-bound(its owner).
class CardLock {
 public:
  explicit CardLock(unsigned card);
  CardLock(const CardLock&) = delete;
  CardLock& operator=(const CardLock&) = delete;
  ~CardLock();

 private:
  const unsigned card_;
};

std::uint64_t milliseconds_now();

}  // namespace millrace::card
