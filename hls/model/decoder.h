// A design at work: its stages and FIFOs as a Dataflow, driven by the jobs of real pictures, and what came of it.
// Everything here is a model's prediction. Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hls/model/design.h"
#include "hls/model/resources.h"
#include "hls/model/work.h"

namespace millrace::hls::model {

// A kind of stage, its copies together: parts of the time, which add up to 1.
struct StageReport {
  std::string stage;
  std::size_t copies = 0;
  double busy = 0;
  double starved = 0;      // nothing to be seen at its input
  double output_full = 0;  // no room behind it
  double no_image = 0;     // of the entropy stage's `starved`: its turn had no image at all
  std::uint64_t tokens = 0;
};

struct FifoReport {
  std::string fifo;
  std::int64_t capacity = 0, most = 0;  // of the copy that held most
};

struct Prediction {
  double images_a_second = 0;  // while pipes are full
  double seconds = 0;          // of the whole run
  std::size_t images = 0;
  double call_ms = 0;  // from the first call to its last image, mean of all calls
  std::vector<StageReport> stages;
  std::vector<FifoReport> fifos;
  std::string binds;     // the busiest stage
  double memory_gb = 0;  // a second, of the card's memory
  Resources takes;
  double share = 0, watts = 0, millijoules = 0;
  // What went in and what came out, for who doubts it.
  std::int64_t blocks_in = 0, blocks_out = 0, pixels_out = 0;
};

// REQUIRES: jobs made for `design` (source, whole scan), not empty.
Prediction predict(const Design& design, const Card& card, std::span<const Job> jobs);

// What jobs of `design` are made with.
WorkSpec work_spec(const Design& design, Recipe recipe);

}  // namespace millrace::hls::model
