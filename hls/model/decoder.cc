#include "hls/model/decoder.h"

#include <algorithm>
#include <cstddef>

#include "hls/model/decoder_flow.h"

namespace millrace::hls::model {
namespace {

// What a kind of stage costs is part of.
constexpr const char* kCostOf[kKinds] = {"",       "fetch",    "entropy",  "entropy", "idct",
                                         "colour", "resample", "resample", "write",   ""};

}  // namespace

Prediction Decoder::run() {
  Prediction prediction;
  const Clocks end = flow_.run(*this);
  prediction.images = jobs_.size();
  prediction.seconds = end / (design_.clock_mhz * 1e6);
  rate(prediction);
  report(prediction);
  prediction.memory_gb = memory_bytes_ / prediction.seconds / 1e9;
  prediction.blocks_in = blocks_in_;
  prediction.blocks_out = blocks_out_;
  prediction.pixels_out = pixels_out_;
  return prediction;
}

// From the first quarter of the images on to the last one, when pipes are full; and no more than PCIe carries, which
// takes whole calls at a time. Few images: all of the time.
void Decoder::rate(Prediction& prediction) const {
  const double hertz = design_.clock_mhz * 1e6, images = static_cast<double>(jobs_.size());
  double lasted = 0, in = 0, out = 0;
  for (const Call& call : calls_) {
    lasted += call.done - call.began;
    in += call.bytes_in;
    out += call.bytes_out;
  }
  prediction.call_ms = lasted / static_cast<double>(calls_.size()) / hertz * 1e3;
  constexpr std::size_t kFew = 16;
  if (jobs_.size() < kFew) {
    prediction.images_a_second = images / prediction.seconds;
    return;
  }
  std::vector<Clocks> done = done_;
  std::sort(done.begin(), done.end());
  const std::size_t first = done.size() / 4, last = done.size() - done.size() / 4 - 1;
  const double rate = static_cast<double>(last - first) / ((done[last] - done[first]) / hertz);
  prediction.images_a_second =
      design_.counts_pcie ? std::min({rate, images * card_.pcie_in * 1e9 / in, images * card_.pcie_out * 1e9 / out})
                          : rate;
}

StageReport Decoder::report_of(int kind) const {
  const Clocks end = flow_.now();
  StageReport report{kNames[kind], stages_[static_cast<std::size_t>(kind)].size()};
  const double parts = end * static_cast<double>(report.copies);
  for (const std::size_t stage : stages_[static_cast<std::size_t>(kind)]) {
    const StageUse use = flow_.use_of(stage);
    report.busy += use.busy / parts;
    report.starved += use.starved / parts;
    report.output_full += use.output_full / parts;
    report.tokens += use.tokens;
  }
  if (kind != kEntropy) return report;
  for (const Unit& unit : units_) {
    for (const Turn& turn : unit.turns)
      report.no_image += (turn.no_image + (turn.has_image ? 0 : end - turn.since)) / parts;
  }
  report.no_image = std::min(report.no_image, report.starved);
  return report;
}

void Decoder::report(Prediction& prediction) const {
  std::vector<StageCost> costs = costs_of(design_);
  for (StageCost& cost : costs) cost.busy = 0;
  double most = -1;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (stages_[static_cast<std::size_t>(kind)].empty()) continue;
    const StageReport report = report_of(kind);
    if (report.busy > most) {
      most = report.busy;
      prediction.binds = report.stage;
    }
    for (StageCost& cost : costs) {
      if (cost.stage == kCostOf[kind]) cost.busy = std::max(cost.busy, report.busy);
    }
    prediction.stages.push_back(report);
  }
  for (const auto& [name, fifos] : fifos_) {
    std::int64_t held = 0;
    for (const std::size_t fifo : fifos) held = std::max(held, flow_.high_water(fifo));
    prediction.fifos.push_back({name, capacities_.at(name), held});
  }
  prediction.takes = total_of(costs);
  prediction.share = share_of(prediction.takes, card_);
  prediction.watts = watts_of(design_, costs, card_);
  prediction.millijoules = prediction.watts / prediction.images_a_second * 1e3;
}

Prediction predict(const Design& design, const Card& card, std::span<const Job> jobs) {
  return Decoder(design, card, jobs).run();
}

WorkSpec work_spec(const Design& design, Recipe recipe) {
  return {.source = design.source, .recipe = recipe, .whole_scan = design.decodes_whole_scan};
}

}  // namespace millrace::hls::model
