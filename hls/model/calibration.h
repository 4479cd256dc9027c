// Published figures of other designs, and what the model says of the same: how far it may be believed. Parameters come
// from what is published about each design (design.cc), never from the figure. Values; thread-safe: plain functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hls/model/design.h"
#include "hls/model/picture.h"
#include "hls/model/work.h"

namespace millrace::hls::model {

// A picture that a figure was measured with. The files are not published, their sizes are: others stand in for them.
struct Input {
  std::string name;
  int width = 0, height = 0;
  double ratio = 0;  // of the samples of 4:2:0 to the file's bytes
};

struct Figure {
  std::string name;      // without spaces
  std::string of;        // where it is published
  double published = 0;  // milliseconds, or images a second
  bool is_rate = false;
  Design design;
  std::string card;
  Recipe recipe = Recipe::kNothing;
  Input input;          // width 0: ImageNet's photographs
  bool is_held = true;  // to kMostOff; false: what another assumption would give
};

const std::vector<Figure>& figures();
inline constexpr double kMostOff = 0.20;

struct Calibrated {
  double predicted = 0;
  double off = 0;  // predicted beside published, less 1
};

// REQUIRES: `inputs` not empty. Of several stand-ins the mean time is taken.
Calibrated calibrate(const Figure& figure, std::span<const Picture> inputs);

}  // namespace millrace::hls::model
