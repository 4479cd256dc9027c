// Failures to order: MILLRACE_CARD_FAULTS is a list of CARD:KIND[=VALUE][@N or %N], divided by commas. @N: the N-th
// command of that card; %N: every N-th; neither: every one.
//
//   0:crash@100   1:hang@50   0:flip@20   0:wrong%7   1:slow=5ms   1:refuse=2   0:away=500ms
//
// refuse: so many programmings fail. away: for so long after its process died a card cannot be opened or programmed.
// A list that cannot be read ends the process. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "hls/card/wire.h"

namespace millrace::card {

struct Fault {
  Harm harm = Harm::kNone;
  std::uint32_t amount = 0;
};

// kNone: no harm is called so.
Harm harm_named(std::string_view kind);

// Counts this command.
Fault next_fault(unsigned card);
// Counts this programming.
bool refuses_programming(unsigned card);

// The card's process died on its own.
void note_death(unsigned card);
bool is_away(unsigned card);

}  // namespace millrace::card
