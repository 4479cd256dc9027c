#include "daemon/backend/fpga/card_figures.h"

namespace millrace {
namespace {

// In the order of CardFigures::Which.
constexpr MetricId kMetrics[] = {MetricId::card_batches, MetricId::card_in_flight, MetricId::card_busy,
                                 MetricId::card_bytes,   MetricId::card_left,      MetricId::card_losses,
                                 MetricId::card_swaps,   MetricId::card_celsius,   MetricId::card_power};

}  // namespace

CardFigures::CardFigures(Counters* counters, const std::string& backend) : counters_(counters) {
  static_assert(std::size(kMetrics) == kCount);
  if (counters_ == nullptr) return;
  for (std::size_t i = 0; i < kCount; ++i) values_[i] = counters_->value_of(kMetrics[i], backend);
}

void CardFigures::add(const FpgaDone& done) {
  add(kBatches, 1);
  add(kBusy, static_cast<std::int64_t>(done.busy_microseconds));
  add(kBytes, static_cast<std::int64_t>(done.moved_bytes));
  if (done.swapped != 0) add(kSwaps, 1);
  set(kCelsius, celsius_, done.celsius);
  set(kPower, watts_, (done.milliwatts + 500) / 1000);
}

void CardFigures::lost_one() {
  add(kLosses, 1);
  set(kCelsius, celsius_, 0);
  set(kPower, watts_, 0);
}

void CardFigures::add(Which which, std::int64_t n) {
  if (counters_ != nullptr) counters_->add(kMetrics[which], values_[which], static_cast<std::uint64_t>(n));
}

}  // namespace millrace
