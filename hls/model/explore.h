// Many designs under a card's resources and power: which of them are worth building. Values; thread-safe: plain
// functions (explore() starts threads of its own, and joins them).
#pragma once

#include <span>
#include <vector>

#include "hls/model/decoder.h"

namespace millrace::hls::model {

struct Tried {
  Design design;
  Prediction prediction;
  bool fits = false;                                  // resources with room for place and route, the clock, the power
  bool worth_by_watts = false, worth_by_lut = false;  // on the front: no other that fits is faster for as little
};

// Lanes, turns, inverse DCTs, resamplers and clocks that make sense together; from 20 lanes on in two units.
std::vector<Design> space_of(Source source);

// Whether a design can be on the card at all; says nothing of power.
bool is_placeable(const Design& design, const Card& card);

// Those of `designs` that are placeable, each with its prediction. `jobs` are of their source.
std::vector<Tried> explore(std::span<const Design> designs, const Card& card, std::span<const Job> jobs, int threads);

// The fastest that fits; within 2 % of it, the one of the least watts. nullptr: none fits.
const Tried* best_of(std::span<const Tried> tried);

// Depths of one FIFO, all others as they are, and what each costs.
struct DepthTried {
  std::string fifo;
  int depth = 0;
  double images_a_second = 0, output_full = 0;  // the second of the stage before it
  bool is_chosen = false;                       // the least that keeps 99 % of the best rate
};
std::vector<DepthTried> explore_depths(const Design& design, const Card& card, std::span<const Job> jobs, int threads);

}  // namespace millrace::hls::model
