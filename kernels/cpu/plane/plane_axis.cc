#include "kernels/cpu/plane/plane_axis.h"

#include <algorithm>
#include <cmath>

namespace millrace::kernels {
namespace {

// What one output takes: weights of neighbouring samples, the first at `start`. They add up to 2^24 at most.
struct Taps {
  int start = 0, count = 0;
  const std::int32_t* weight = nullptr;
};

bool is_narrow(const AxisSpec& side) {
  const bool positive = side.filter == Filter::kBilinear || side.filter == Filter::kHamming;
  return positive && side.in != side.out;
}

// 128 is no signed byte.
void limit(std::int16_t* weight, int taps) {
  for (int t = 0; t < taps; ++t) {
    if (weight[t] <= 127) continue;
    weight[t + 1 < taps ? t + 1 : t - 1] += static_cast<std::int16_t>(weight[t] - 127);
    weight[t] = 127;
  }
}

// Rounds the running sum instead of each weight.
void append(const Taps& taps, int bits, PlaneAxis& axis) {
  const int shift = bits - axis.bits;
  std::int32_t sum = 1 << (shift - 1), before = 0;
  std::int16_t* const weight = &axis.weight[axis.start.size() * static_cast<std::size_t>(axis.taps)];
  int last = 0;
  for (int t = 0; t < taps.count; ++t) {
    sum += taps.weight[t];
    const std::int32_t rounded = sum >> shift;
    weight[t] = static_cast<std::int16_t>(rounded - before);
    if (rounded != before) last = t;
    before = rounded;
  }
  axis.start.push_back(taps.start);
  axis.last.push_back(taps.start + last);
  if (axis.bits == kNarrowBits) limit(weight, axis.taps);
}

// Taps that the filter left at 0 do not count, wherever they stand.
void trim(const std::int32_t* weight, int count, int& first, int& last) {
  first = 0;
  last = count - 1;
  while (first < last && weight[first] == 0) ++first;
  while (last > first && weight[last] == 0) --last;
}

// --- a sample a pixel ---

Taps plain_taps(const PlaneAxisSpec& spec, const AxisWeights& weights, int output) {
  const std::size_t i = static_cast<std::size_t>(output);
  const std::int32_t* const weight = &weights.weight[i * static_cast<std::size_t>(weights.taps)];
  int first, last;
  trim(weight, weights.taps, first, last);
  return {spec.offset + weights.start[i] + first, last - first + 1, weight + first};
}

// --- chroma of half size ---

struct Smoothing {
  int near, far;
};

Smoothing smoothing_of(int pixel, int count) {
  const int near = pixel / 2;
  return {near, std::clamp(pixel % 2 == 0 ? near - 1 : near + 1, 0, count - 1)};
}

Taps smoothed_taps(const PlaneAxisSpec& spec, const AxisWeights& weights, int output,
                   std::vector<std::int32_t>& memory) {
  const std::size_t i = static_cast<std::size_t>(output);
  const std::int32_t* const weight = &weights.weight[i * static_cast<std::size_t>(weights.taps)];
  int first, last;
  trim(weight, weights.taps, first, last);
  const int pixel = spec.offset + weights.start[i];
  const int count = spec.grid.count;
  const Smoothing left = smoothing_of(pixel + first, count), right = smoothing_of(pixel + last, count);
  const int start = std::min(left.near, left.far), samples = std::max(right.near, right.far) - start + 1;
  memory.assign(static_cast<std::size_t>(samples), 0);
  for (int t = first; t <= last; ++t) {
    const Smoothing smoothing = smoothing_of(pixel + t, count);
    memory[static_cast<std::size_t>(smoothing.near - start)] += 3 * weight[t];
    memory[static_cast<std::size_t>(smoothing.far - start)] += weight[t];
  }
  return {start, samples, memory.data()};
}

// --- samples of several pixels ---

// A filter with edges: each pixel's weight goes to the sample that it lies in.
Taps covered_taps(const PlaneAxisSpec& spec, const AxisWeights& weights, int output,
                  std::vector<std::int32_t>& memory) {
  const Taps pixels = plain_taps(spec, weights, output);
  const auto sample_of = [&](int pixel) { return std::min(pixel / spec.grid.step, spec.grid.count - 1); };
  const int start = sample_of(pixels.start);
  memory.assign(static_cast<std::size_t>(sample_of(pixels.start + pixels.count - 1) - start + 1), 0);
  for (int t = 0; t < pixels.count; ++t)
    memory[static_cast<std::size_t>(sample_of(pixels.start + t) - start)] += pixels.weight[t];
  return {start, static_cast<int>(memory.size()), memory.data()};
}

// How much of sample `i` lies in the crop.
double overlap(const PlaneAxisSpec& spec, int i) {
  const int step = spec.grid.step;
  const int from = std::max(i * step, spec.offset), to = std::min((i + 1) * step, spec.offset + spec.side.in);
  return static_cast<double>(std::max(0, to - from)) / step;
}

// A smooth filter, evaluated at the centres of the samples.
Taps coarse_taps(const PlaneAxisSpec& spec, int output, std::vector<std::int32_t>& memory) {
  const AxisSpec& side = spec.side;
  const int step = spec.grid.step;
  const double scale = static_cast<double>(side.in) / side.out;
  const double centre = spec.offset + (side.first + output + 0.5) * scale;
  const double widening = std::max(scale, static_cast<double>(step));
  const double reach = filter_support(side.filter) * widening;
  const int lowest = spec.offset / step;
  const int highest = std::min((spec.offset + side.in - 1) / step, spec.grid.count - 1);
  const int from = std::clamp(static_cast<int>(std::floor((centre - reach) / step)), lowest, highest);
  const int to = std::clamp(static_cast<int>(std::ceil((centre + reach) / step)), lowest, highest);
  std::vector<double> weight;
  double sum = 0;
  for (int i = from; i <= to; ++i) {
    weight.push_back(overlap(spec, i) * filter_value(side.filter, ((i + 0.5) * step - centre) / widening));
    sum += weight.back();
  }
  memory.clear();
  for (const double one : weight)
    memory.push_back(static_cast<std::int32_t>(std::lround(one / sum * (1 << kPrecisionBits))));
  int first, last;
  trim(memory.data(), static_cast<int>(memory.size()), first, last);
  return {from + first, last - first + 1, memory.data() + first};
}

Taps taps_of(const PlaneAxisSpec& spec, const AxisWeights& weights, int output, std::vector<std::int32_t>& memory) {
  if (spec.grid.smoothed) return smoothed_taps(spec, weights, output, memory);
  if (spec.grid.step == 1) return plain_taps(spec, weights, output);
  return spec.side.filter == Filter::kBox ? covered_taps(spec, weights, output, memory)
                                          : coarse_taps(spec, output, memory);
}

int most_taps(const PlaneAxisSpec& spec, const AxisWeights& weights) {
  if (spec.grid.smoothed) return weights.taps / 2 + 2;
  if (spec.grid.step == 1) return weights.taps;
  if (spec.side.filter == Filter::kBox) return weights.taps / spec.grid.step + 2;
  const double widening =
      std::max(static_cast<double>(spec.side.in) / spec.side.out, static_cast<double>(spec.grid.step));
  return static_cast<int>(std::ceil(2 * filter_support(spec.side.filter) * widening / spec.grid.step)) + 2;
}

void clear(PlaneAxis& axis) {
  axis.start.clear();
  axis.last.clear();
  axis.weight.clear();
  axis.windows.clear();
  axis.lines.clear();
  axis.full_windows = axis.blocks = 0;
}

// --- windows ---

struct Lanes {
  int base = 0;   // the first sample
  int count = 0;  // output samples
};

// The first sample of an output sample.
int first_of(const PlaneAxis& axis, int sample) {
  const int output = sample / axis.channels;
  return (axis.start[static_cast<std::size_t>(output)] - axis.begin) * axis.channels + sample % axis.channels;
}

// As many output samples from `first` on as fit: four taps of each within shape.bytes of each other.
Lanes lanes_from(const PlaneAxis& axis, const WindowShape& shape, int first) {
  int low = first_of(axis, first), high = low, count = 1;
  for (; count < shape.lanes && first + count < axis.count() * axis.channels; ++count) {
    const int start = first_of(axis, first + count);
    if (std::max(high, start) - std::min(low, start) + 3 * axis.channels + 1 > shape.bytes) break;
    low = std::min(low, start);
    high = std::max(high, start);
  }
  return {low, count};
}

void pack_lane(const PlaneAxis& axis, int sample, int base, std::uint8_t* at, int vector_bytes) {
  const int first = first_of(axis, sample) - base;
  for (int t = 0; t < 4; ++t) at[t] = static_cast<std::uint8_t>(first + t * axis.channels);
  const std::size_t taps = static_cast<std::size_t>(axis.taps),
                    output = static_cast<std::size_t>(sample / axis.channels);
  const std::int16_t* const weights = &axis.weight[output * taps];
  for (int t = 0; t < axis.taps; ++t) {
    const int weight = weights[t];
    if (axis.bits == kNarrowBits) {
      at[(1 + t / 4) * vector_bytes + t % 4] = static_cast<std::uint8_t>(weight);
      continue;
    }
    const int upper = (weight + 64) >> 7;
    std::uint8_t* const block = at + (1 + 2 * (t / 4)) * vector_bytes + t % 4;
    block[0] = static_cast<std::uint8_t>(upper);
    block[vector_bytes] = static_cast<std::uint8_t>(weight - 128 * upper);
  }
}

}  // namespace

void make_plane_axis(const PlaneAxisSpec& spec, const AxisWeights& weights, PlaneAxis& axis) {
  clear(axis);
  axis.taps = (most_taps(spec, weights) + 1) / 2 * 2;
  axis.bits = is_narrow(spec.side) ? kNarrowBits : kWideBits;
  axis.channels = spec.side.channels;
  axis.weight.resize(static_cast<std::size_t>(axis.taps) * static_cast<std::size_t>(spec.side.count), 0);
  const int bits = spec.grid.smoothed ? kPrecisionBits + 2 : kPrecisionBits;
  std::vector<std::int32_t> memory;
  for (int i = 0; i < spec.side.count; ++i) {
    const int output = spec.flip == Flip::kHorizontal ? spec.side.count - 1 - i : i;
    append(taps_of(spec, weights, output, memory), bits, axis);
  }
  axis.begin = *std::min_element(axis.start.begin(), axis.start.end());
  axis.end = *std::max_element(axis.last.begin(), axis.last.end()) + 1;
}

void pack_windows(const WindowShape& shape, PlaneAxis& axis) {
  const int vector_bytes = shape.vector_bytes();
  axis.blocks = (axis.taps + 3) / 4;
  const std::size_t unit = static_cast<std::size_t>(axis.vectors() * vector_bytes);
  const std::size_t together = static_cast<std::size_t>(shape.together);
  for (int sample = 0; sample < axis.count() * axis.channels;) {
    const Lanes lanes = lanes_from(axis, shape, sample);
    const bool full = lanes.count == shape.lanes;
    if (full && axis.full_windows == static_cast<int>(axis.windows.size())) ++axis.full_windows;
    const std::size_t index = axis.windows.size();
    axis.windows.push_back({lanes.base, sample});
    axis.lines.resize(((index / together + 1) * unit + sizeof(Line) - 1) / sizeof(Line));
    std::uint8_t* at = reinterpret_cast<std::uint8_t*>(axis.lines.data()) + index / together * unit +
                       index % together * static_cast<std::size_t>(4 * shape.lanes);
    for (int lane = 0; lane < lanes.count; ++lane, at += 4)
      pack_lane(axis, sample + lane, lanes.base, at, vector_bytes);
    sample += lanes.count;
  }
}

}  // namespace millrace::kernels
