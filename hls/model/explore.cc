#include "hls/model/explore.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

namespace millrace::hls::model {
namespace {

// Calls `each` with 0..count-1, on as many threads.
template <typename Each>
void share_out(std::size_t count, int threads, const Each& each) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) each(i);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

double lut_of(const Tried& one) {
  return one.prediction.takes.lut;
}
double power_of(const Tried& one) {
  return one.prediction.watts;
}

template <typename Cost>
void mark_front(std::vector<Tried>& tried, const Cost& cost, bool Tried::*mark) {
  for (Tried& one : tried) {
    one.*mark = one.fits && std::none_of(tried.begin(), tried.end(), [&](const Tried& other) {
                  const double faster = other.prediction.images_a_second - one.prediction.images_a_second;
                  const double dearer = cost(other) - cost(one);
                  return other.fits && faster >= 0 && dearer <= 0 && (faster > 0 || dearer < 0);
                });
  }
}

struct Depth {
  const char* fifo;
  const char* before;  // the stage that waits when it is full
  int Design::*depth;
  std::vector<int> tries;
};

const std::vector<Depth>& depths() {
  static const std::vector<Depth> all = {
      {"stream", "fetch", &Design::stream_bytes, {64, 128, 256, 512, 1024, 4096}},
      {"coefficients", "entropy", &Design::mcu_buffers, {1, 2, 3, 4, 8, 16}},
      {"samples", "idct", &Design::sample_mcus, {1, 2, 3, 4, 8, 16}},
      {"lines", "colour", &Design::line_rows, {1, 2, 3, 4}},
      {"filtered", "columns", &Design::filtered_rows, {1, 2, 3, 4}},
      {"words", "rows", &Design::word_bytes, {512, 2048, 8192, 16384, 32768}},
  };
  return all;
}

double output_full(const Prediction& prediction, const char* stage) {
  for (const StageReport& report : prediction.stages) {
    if (report.stage == stage) return report.output_full;
  }
  return 0;
}

Design variant(Design design, int units, int lanes, int turns, int shared, int pixels, double clock) {
  design.units = units;
  design.lanes = lanes;
  design.turns = turns;
  design.lanes_an_idct = design.lanes_a_resampler = shared;
  design.resample_pixels = pixels;
  design.clock_mhz = clock;
  return design;
}

}  // namespace

std::vector<Design> space_of(Source source) {
  const Design base = source == Source::kPacked ? packed_design() : jpeg_design();
  std::vector<Design> all;
  for (const int lanes : {8, 12, 14, 16, 20, 24, 28, 32})
    for (const int turns : {1, 2})
      for (const int shared : {1, 2, 4})
        for (const int pixels : {1, 2, 4, 8})
          for (const double clock : {200.0, 250.0, 300.0}) {
            const int units = lanes > 16 ? 2 : 1;  // each has ports of its own
            const bool packed = source == Source::kPacked;
            if (lanes % (units * shared) != 0 || pixels == (packed ? 1 : 8) || (packed && turns > 1)) continue;
            all.push_back(variant(base, units, lanes / units, turns, shared, pixels, clock));
          }
  return all;
}

bool is_placeable(const Design& design, const Card& card) {
  const double share = share_of(total_of(costs_of(design)), card);
  return share <= kMostShare && design.clock_mhz <= fastest_clock(design, share);
}

std::vector<Tried> explore(std::span<const Design> designs, const Card& card, std::span<const Job> jobs, int threads) {
  std::vector<Tried> tried;
  for (const Design& design : designs) {
    if (is_placeable(design, card)) tried.push_back({.design = design, .prediction = {}});
  }
  share_out(tried.size(), threads, [&](std::size_t i) {
    Tried& one = tried[i];
    one.prediction = predict(one.design, card, jobs);
    one.fits = one.prediction.watts <= card.most_watts;
  });
  mark_front(tried, power_of, &Tried::worth_by_watts);
  mark_front(tried, lut_of, &Tried::worth_by_lut);
  return tried;
}

const Tried* best_of(std::span<const Tried> tried) {
  double most = 0;
  for (const Tried& one : tried) {
    if (one.fits) most = std::max(most, one.prediction.images_a_second);
  }
  const Tried* best = nullptr;
  for (const Tried& one : tried) {
    if (!one.fits || one.prediction.images_a_second < 0.98 * most) continue;
    if (best == nullptr || one.prediction.watts < best->prediction.watts) best = &one;
  }
  return best;
}

std::vector<DepthTried> explore_depths(const Design& design, const Card& card, std::span<const Job> jobs, int threads) {
  std::vector<DepthTried> tried;
  std::vector<std::pair<Design, const Depth*>> designs;
  for (const Depth& depth : depths()) {
    for (const int tries : depth.tries) {
      Design one = design;
      one.*depth.depth = tries;
      designs.emplace_back(one, &depth);
      tried.push_back({depth.fifo, tries});
    }
  }
  share_out(tried.size(), threads, [&](std::size_t i) {
    const Prediction prediction = predict(designs[i].first, card, jobs);
    tried[i].images_a_second = prediction.images_a_second;
    tried[i].output_full = output_full(prediction, designs[i].second->before);
  });
  for (const Depth& depth : depths()) {
    double most = 0;
    for (const DepthTried& one : tried) most = one.fifo == depth.fifo ? std::max(most, one.images_a_second) : most;
    const auto least = std::find_if(tried.begin(), tried.end(), [&](const DepthTried& one) {
      return one.fifo == depth.fifo && one.images_a_second >= 0.99 * most;
    });
    if (least != tried.end()) least->is_chosen = true;
  }
  return tried;
}

}  // namespace millrace::hls::model
