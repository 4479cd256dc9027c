// The figures of one card: rows card_* of the metric table, by backend. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
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
  void lost_one();

 private:
  enum Which : std::uint8_t { kBatches, kInFlight, kBusy, kBytes, kLeft, kLosses, kSwaps, kCelsius, kPower, kCount };

  void add(Which which, std::int64_t n);
  void set(Which which, std::atomic<std::int32_t>& last, std::int32_t now) { add(which, now - last.exchange(now)); }

  Counters* const counters_;
  LabelValue values_[kCount]{};
  // Writers: lanes; what is shown of the card. Publish nothing but themselves.
  std::atomic<std::int32_t> celsius_ = 0, watts_ = 0;
};

}  // namespace millrace
