// One side of the fast resampling: which samples of a plane make each output, with 13-bit weights, and the same packed
// for a target. Internal to kernels/cpu. Immutable once made; its memory is kept for the next one.
//
// A plane need not have a sample a pixel. Chroma of half size gets the weights of libjpeg's smoothing and of the filter
// multiplied out, so that it is resampled from its own grid to what smoothing it first would give, but for rounding. A
// plane that a scaled inverse DCT made has the filter evaluated at the centres of its samples.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/axis_table.h"
#include "kernels/cpu/axis_weights.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/target.h"

namespace millrace::kernels {

// The samples of a plane along one side.
struct PlaneGrid {
  int step = 1;   // pixels from sample to sample
  int count = 0;  // samples of the whole image
  // Chroma of half size, which exact decoding smooths up: 3/4 of the nearer sample, 1/4 of the further. step is 2.
  bool smoothed = false;
  friend bool operator==(const PlaneGrid&, const PlaneGrid&) = default;
};

struct PlaneAxisSpec {
  AxisSpec side;   // crop to target; channels count for nothing
  int offset = 0;  // where the crop begins in the image, pixels
  PlaneGrid grid;
  Flip flip = Flip::kNone;  // of the outputs
  friend bool operator==(const PlaneAxisSpec&, const PlaneAxisSpec&) = default;
};

inline constexpr int kPlaneWeightBits = 13;  // weights add up to 2^13

struct PlaneAxis {
  // Output i is sum(weight[i * taps + t] * sample[start[i] + t]). Samples are counted in the image. Taps with a weight
  // of 0 pad, and may lie behind the last sample.
  int taps = 0;            // even
  int begin = 0, end = 0;  // all samples that count
  std::vector<std::int32_t> start, last;
  std::vector<std::int16_t> weight;

  // For targets that shuffle; see pack_windows().
  struct Window {
    std::int32_t source;  // from `begin`
    std::int32_t output;
  };
  std::vector<Window> windows;
  int full_windows = 0;  // so many from the first have all their lanes
  int blocks = 0;        // of four taps
  std::vector<Line> lines;

  int count() const { return static_cast<int>(start.size()); }
};

// `weights`: axis_weights(spec.side). REQUIRES: a filter other than kNearest; offset + side.in lies within the image.
void make_plane_axis(const PlaneAxisSpec& spec, const AxisWeights& weights, PlaneAxis& axis);

// How a target shuffles: a load of `bytes` holds four taps of each of up to `lanes` neighbouring outputs; `together` of
// them make a vector.
struct WindowShape {
  int lanes;
  int bytes;
  int together;
  int vector_bytes() const { return 4 * lanes * together; }
};

// Cuts the outputs into windows, a multiple of shape.together. For each vector of them `lines` has a vector of shuffle
// indices, then for each block one of the weights' upper parts and one of their lower parts: signed bytes, weight = 128
// * upper + lower.
void pack_windows(const WindowShape& shape, PlaneAxis& axis);

}  // namespace millrace::kernels
