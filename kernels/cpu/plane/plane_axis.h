// One side of the fast resampling: which samples of a plane make each output, with weights of 7 or 13 bits, and the
// same packed for a target. Internal to kernels/cpu. Immutable once made; its memory is kept for the next one.
//
// A plane need not have a sample a pixel. Chroma of half size gets the weights of libjpeg's smoothing and of the filter
// multiplied out, so that it is resampled from its own grid to what smoothing it first would give, but for rounding. A
// plane that a scaled inverse DCT made has the filter evaluated at the centres of its samples; of kBox, whose edges may
// cross a sample, it has the weights of the pixels that each sample stands for.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/cpu/axis_table.h"
#include "kernels/tensor/axis_weights.h"
#include "kernels/tensor/store_spec.h"

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
  AxisSpec side;   // crop to target; channels: of the pixels that windows are packed for
  int offset = 0;  // where the crop begins in the image, pixels
  PlaneGrid grid;
  Flip flip = Flip::kNone;  // of the outputs
  friend bool operator==(const PlaneAxisSpec&, const PlaneAxisSpec&) = default;
};

// Weights add up to 2^bits. Not each of them is rounded but their running sum, so an output is off by at most 1/256 of
// what its samples go up and down in 7 bits. Those are for filters without negative weights where the size changes.
inline constexpr int kNarrowBits = 7, kWideBits = 13;

struct PlaneAxis {
  // Output i is sum(weight[i * taps + t] * sample[start[i] + t]). Samples are counted in the image. Taps with a weight
  // of 0 pad, and may lie after the last sample. A narrow weight is at most 127, of which the rest is in the next one:
  // sample `end` is read as what comes before it.
  int bits = kWideBits;
  int taps = 0;            // even
  int begin = 0, end = 0;  // all samples that count
  std::vector<std::int32_t> start, last;
  std::vector<std::int16_t> weight;

  // For targets that shuffle; see pack_windows().
  struct Window {
    std::int32_t source;  // sample, from the first of `begin`
    std::int32_t output;  // sample
  };
  std::vector<Window> windows;
  int full_windows = 0;  // so many from the first have all their lanes
  int blocks = 0;        // of four taps
  int channels = 1;      // samples of an output; those of a tap are as far apart
  std::vector<Line> lines;

  int vectors() const { return 1 + (bits == kNarrowBits ? 1 : 2) * blocks; }  // of a vector of windows
  int count() const { return static_cast<int>(start.size()); }
};

// `weights`: axis_weights(spec.side). REQUIRES: a filter other than kNearest; offset + side.in lies within the image.
void make_plane_axis(const PlaneAxisSpec& spec, const AxisWeights& weights, PlaneAxis& axis);

// How a target shuffles: a load of `bytes` holds four taps of each of up to `lanes` neighbouring output samples;
// `together` of them make a vector.
struct WindowShape {
  int lanes;
  int bytes;
  int together;
  int vector_bytes() const { return 4 * lanes * together; }
};

// Cuts the outputs into windows. For each vector of them `lines` has a vector of shuffle indices, then for each block
// one of narrow weights; or one of wide weights' upper parts and one of their lower parts: weight = 128 * upper +
// lower. All are signed bytes.
void pack_windows(const WindowShape& shape, PlaneAxis& axis);

}  // namespace millrace::kernels
