// What all processes on one host with simulated cards share: the file that MILLRACE_CARD_CONTROL names (none: a page of
// this process alone). All zero is a good beginning.
//
// Thread-safe, and safe between processes.
#pragma once

#include <atomic>
#include <cstdint>

#include "hls/card/shim/settings.h"

namespace millrace::card {

// Of a card. Written by millrace-card as well.
struct CardControl {
  std::atomic<std::uint64_t> commands;  // started so far
  std::atomic<std::uint32_t> harm;      // a Harm for the next command; taken away by it
  std::atomic<std::uint32_t> harm_amount;
  std::atomic<std::uint32_t> refusals;    // programmings still to be refused
  std::atomic<std::uint64_t> away_until;  // milliseconds of the monotonic clock; until then the card cannot be opened
};

// Never fails: a file that cannot be used ends the process.
CardControl& control_of(unsigned card);

std::uint64_t milliseconds_now();

}  // namespace millrace::card
