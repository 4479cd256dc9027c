#include "hls/model/resources.h"

#include <algorithm>

namespace millrace::hls::model {
namespace {

constexpr Resources kShell{108'100, 150'000, 178, 0, 4};  // of Vitis' benchmark page, "platform"; FF assumed

// Of a kind of stage: one copy.
Resources entropy_lane(const Design& design) {
  if (design.source == Source::kPacked)
    return {5'500, 5'500, 4, 0, 0};  // shapes' table, shifters, placing eight values
  // Vitis' Huffman decoder has 7,900 LUT with its header parser; a further turn has state and tables of its own.
  return {7'000 + 1'500.0 * (design.turns - 1), 7'000 + 1'500.0 * (design.turns - 1), 2.0 * design.turns, 0, 2};
}

Resources stream_of(const Design&) {
  return {1'500, 1'500, 1, 0, 0};
}  // unstuffing eight bytes a clock, and its FIFO

Resources coefficients_of(const Design& design) {
  return {200, 200, 1.0 * design.mcu_buffers, 0, 0};
}

// Of Vitis' whole decoder without its Huffman decoder: 16,700 LUT and 37 DSP, interfaces included.
Resources idct_of(const Design& design) {
  const double scale = design.idct_coefficients / 8.0;
  return {10'000 * scale, 9'500 * scale, 8, 0, 37 * scale};
}

Resources colour_of(const Design& design) {
  const double scale = design.colour_pixels / 8.0;
  return {4'000 * scale, 4'000 * scale, 6, 0, 32 * scale};
}

// MCU rows of 16 lines x 4,096 pixels x 3 bytes, in UltraRAM of 36 KiB.
Resources lines_of(const Design& design) {
  return {300, 300, 0, 6.0 * design.line_rows, 0};
}

// Vitis' resize takes 15,000 LUT, 29 BRAM and 168 DSP for 8 samples a clock of one channel.
Resources resampler_of(const Design& design) {
  const double scale = design.resample_pixels * 3 / 8.0;
  return {1'500 + 15'000 * scale, 1'500 + 15'000 * scale, 29 * scale, 0, 168 * scale};
}

// Of a turn, which has its own image: axis tables, MCU rows of 16 lines x 768 filtered pixels x 3 bytes, and words.
Resources tensor_state_of(const Design& design) {
  return {400, 400, design.word_bytes / 4'608.0, 1.0 + design.filtered_rows, 0};
}

Resources fetch_of(const Design&) {
  return {5'000, 6'000, 15, 0, 0};
}
Resources write_of(const Design&) {
  return {8'000, 8'000, 23, 0, 0};
}  // with the store tables
Resources control_of(const Design&) {
  return {6'000, 6'000, 10, 0, 0};
}

// Watts of one at 1 MHz, always at work, with its share of routing and clock tree.
struct Watts {
  double lut, ff, bram, uram, dsp;
};
constexpr Watts kUltrascale{1.5e-7, 3e-8, 3e-5, 6e-5, 1.5e-5};
constexpr Watts kArria{2.5e-7, 5e-8, 3e-5, 0, 2.5e-5};
constexpr double kAlways = 0.3;  // of these, also when a stage has nothing to do

}  // namespace

Resources& Resources::operator+=(const Resources& other) {
  lut += other.lut;
  ff += other.ff;
  bram += other.bram;
  uram += other.uram;
  dsp += other.dsp;
  return *this;
}

const std::vector<Card>& cards() {
  static const std::vector<Card> all = {
      {"u50", "Alveo U50", {872'000, 1'743'000, 1'344, 640, 5'952}, kShell, 11, 12, 201, 14.375, 75, 22, true},
      {"u250", "Alveo U250", {1'728'000, 3'456'000, 2'688, 1'280, 12'288}, kShell, 11, 12, 77, 19.25, 225, 33, true},
      {"arria10",
       "Arria 10 GX 1150",
       {854'400, 1'708'800, 1'508, 0, 1'518},
       {85'000, 170'000, 150, 0, 0},
       6,
       6,
       17,
       17,
       75,
       15,
       false},
  };
  return all;
}

std::optional<Card> card_of(std::string_view name) {
  for (const Card& card : cards()) {
    if (card.name == name) return card;
  }
  return std::nullopt;
}

std::vector<StageCost> costs_of(const Design& design) {
  const double contexts = design.contexts(), lanes = design.units * design.lanes;
  const double idcts = lanes / design.lanes_an_idct;
  std::vector<StageCost> costs = {
      {"fetch", design.units * fetch_of(design)},
      {"entropy", lanes * entropy_lane(design)},
      {"idct", idcts * idct_of(design)},
      {"write", design.units * write_of(design)},
      {"control", design.units * control_of(design)},
  };
  costs[1].takes += contexts * coefficients_of(design);
  costs[0].takes += contexts * stream_of(design);
  if (!design.makes_tensors) return costs;
  const double resamplers = lanes / design.lanes_a_resampler;
  costs.push_back({"colour", idcts * colour_of(design)});
  costs.back().takes += contexts * lines_of(design);
  costs.push_back({"resample", resamplers * resampler_of(design)});
  costs.back().takes += contexts * tensor_state_of(design);
  return costs;
}

Resources total_of(const std::vector<StageCost>& costs) {
  Resources total;
  for (const StageCost& cost : costs) total += cost.takes;
  return total;
}

double share_of(const Resources& takes, const Card& card) {
  Resources both = takes;
  both += card.shell;
  const double memories = card.all.uram > 0 ? both.uram / card.all.uram : 0;
  return std::max(
      {both.lut / card.all.lut, both.ff / card.all.ff, both.bram / card.all.bram, memories, both.dsp / card.all.dsp});
}

double fastest_clock(const Design& design, double share) {
  // One turn: Vitis' Huffman decoder closes at 270 MHz; more: its loop is cut, and Vitis' resize, at 341, is next.
  const bool has_loop = design.source == Source::kJpegScan && design.turns == 1;
  return (has_loop ? 270 : 341) * (1 - 0.6 * std::max(0.0, share - 0.5));
}

double watts_of(const Design& design, const std::vector<StageCost>& costs, const Card& card) {
  const Watts& one = card.ultrascale ? kUltrascale : kArria;
  double watts = card.idle_watts;
  for (const StageCost& cost : costs) {
    const Resources& has = cost.takes;
    const double most =
        has.lut * one.lut + has.ff * one.ff + has.bram * one.bram + has.uram * one.uram + has.dsp * one.dsp;
    watts += most * design.clock_mhz * (kAlways + (1 - kAlways) * std::min(1.0, cost.busy));
  }
  return watts;
}

}  // namespace millrace::hls::model
