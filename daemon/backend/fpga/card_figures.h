// The figures of one card: rows card_* of the metric table, by backend. Thread-safe.
#pragma once

#include <string>

#include "daemon/backend/fpga/fpga_wire.h"
#include "daemon/observe/counters.h"

namespace millrace {

class CardFigures {
 public:
  // `counters` outlives it. nullptr: nothing is counted.
  CardFigures(Counters* counters, const std::string& backend);

  void begins() { add(kInFlight, 1); }  // a batch, towards the card
  void ends() { add(kInFlight, -1); }
  void add(const FpgaDone& done);
  void left_one() { add(kLeft, 1); }
  void lost_one() { add(kLosses, 1); }

 private:
  enum Which : std::uint8_t { kBatches, kInFlight, kBusy, kBytes, kLeft, kLosses, kSwaps, kCount };

  void add(Which which, std::int64_t n);

  Counters* const counters_;
  LabelValue values_[kCount]{};
};

}  // namespace millrace
