// What cards have, what a design takes of it, and the power that this comes to. Estimates: the figures of each stage are
// scaled from published ones where there are any, and are assumptions where there are none (README.md lists both).
// Values; thread-safe: plain functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hls/model/design.h"

namespace millrace::hls::model {

struct Resources {
  double lut = 0, ff = 0, bram = 0, uram = 0, dsp = 0;  // BRAM in blocks of 36 kbit

  Resources& operator+=(const Resources& other);
  friend Resources operator*(double times, const Resources& one) {
    return {times * one.lut, times * one.ff, times * one.bram, times * one.uram, times * one.dsp};
  }
};

struct Card {
  std::string name, title;
  Resources all, shell;  // the shell has PCIe, DMA and memory controllers
  double pcie_in = 0;    // GB/s, as DMA tests measure them
  double pcie_out = 0;
  double memory = 0, port = 0;  // GB/s: of all channels together, and of one
  double most_watts = 0;
  double idle_watts = 0;   // with the shell loaded and a clock that runs
  bool ultrascale = true;  // what the watts of resources are for
};

const std::vector<Card>& cards();
std::optional<Card> card_of(std::string_view name);

// A stage's copies together.
struct StageCost {
  std::string stage;
  Resources takes;
  double busy = 1;  // how much of the time
};

std::vector<StageCost> costs_of(const Design& design);
Resources total_of(const std::vector<StageCost>& costs);

// The largest share of a card's resource that design and shell have together; above 1 it does not fit at all.
double share_of(const Resources& takes, const Card& card);
inline constexpr double kMostShare = 0.75;  // what place and route are taken to manage

// MHz that a design of this kind closes at, on a card of which it takes this share.
double fastest_clock(const Design& design, double share);

// Watts of the card with this design at work.
double watts_of(const Design& design, const std::vector<StageCost>& costs, const Card& card);

}  // namespace millrace::hls::model
