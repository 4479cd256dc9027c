#include "kernels/cpu/plane_axis.h"

#include <algorithm>
#include <cmath>

namespace millrace::kernels {
namespace {

// What one output takes: weights of neighbouring samples, the first at `start`, in 1 / 2^bits.
struct Taps {
  int start = 0;
  std::vector<std::int32_t> weight;
};

bool is_narrow(const AxisSpec& side) {
  const bool positive = side.filter == Filter::kBilinear || side.filter == Filter::kHamming;
  return positive && side.in != side.out;
}

// 128 is no signed byte.
void limit(std::int16_t* weight, int taps) {
  for (int t = 0; t < taps; ++t) {
    const int rest = std::max(weight[t] - 127, 0);
    weight[t] = static_cast<std::int16_t>(weight[t] - rest);
    weight[t + 1 < taps ? t + 1 : t - 1] = static_cast<std::int16_t>(weight[t + 1 < taps ? t + 1 : t - 1] + rest);
  }
}

// Rounds the running sum instead of each weight.
void append(const Taps& taps, int bits, PlaneAxis& axis) {
  std::int64_t sum = 0;
  std::int32_t before = 0;
  const int shift = bits - axis.bits;
  const std::int64_t half = std::int64_t{1} << (shift - 1);
  const std::size_t at = axis.weight.size();
  axis.weight.resize(at + static_cast<std::size_t>(axis.taps), 0);
  axis.start.push_back(taps.start);
  int last = taps.start;
  for (std::size_t t = 0; t < taps.weight.size(); ++t) {
    sum += taps.weight[t];
    const auto rounded = static_cast<std::int32_t>((sum + half) >> shift);
    axis.weight[at + t] = static_cast<std::int16_t>(rounded - before);
    if (rounded != before) last = taps.start + static_cast<int>(t);
    before = rounded;
  }
  axis.last.push_back(last);
  if (axis.bits == kNarrowBits) limit(&axis.weight[at], axis.taps);
}

// Taps that the filter left at 0 do not count, wherever they stand.
void trim(const std::int32_t* weight, int count, int& first, int& last) {
  first = 0;
  last = count - 1;
  while (first < last && weight[first] == 0) ++first;
  while (last > first && weight[last] == 0) --last;
}

// --- a sample a pixel ---

void plain_taps(const PlaneAxisSpec& spec, const AxisWeights& weights, int output, Taps& taps) {
  const std::size_t i = static_cast<std::size_t>(output);
  const std::int32_t* const weight = &weights.weight[i * static_cast<std::size_t>(weights.taps)];
  int first, last;
  trim(weight, weights.taps, first, last);
  taps.start = spec.offset + weights.start[i] + first;
  taps.weight.assign(weight + first, weight + last + 1);
}

// --- chroma of half size ---

struct Smoothing {
  int near, far;
};

Smoothing smoothing_of(int pixel, int count) {
  const int near = pixel / 2;
  return {near, std::clamp(pixel % 2 == 0 ? near - 1 : near + 1, 0, count - 1)};
}

void smoothed_taps(const PlaneAxisSpec& spec, const AxisWeights& weights, int output, Taps& taps) {
  const std::size_t i = static_cast<std::size_t>(output);
  const std::int32_t* const weight = &weights.weight[i * static_cast<std::size_t>(weights.taps)];
  int first, last;
  trim(weight, weights.taps, first, last);
  const int pixel = spec.offset + weights.start[i];
  const int count = spec.grid.count;
  const Smoothing left = smoothing_of(pixel + first, count), right = smoothing_of(pixel + last, count);
  taps.start = std::min(left.near, left.far);
  taps.weight.assign(static_cast<std::size_t>(std::max(right.near, right.far) - taps.start + 1), 0);
  for (int t = first; t <= last; ++t) {
    const Smoothing samples = smoothing_of(pixel + t, count);
    taps.weight[static_cast<std::size_t>(samples.near - taps.start)] += 3 * weight[t];
    taps.weight[static_cast<std::size_t>(samples.far - taps.start)] += weight[t];
  }
}

// --- samples of several pixels ---

// How much of sample `i` lies in the crop.
double overlap(const PlaneAxisSpec& spec, int i) {
  const int step = spec.grid.step;
  const int from = std::max(i * step, spec.offset), to = std::min((i + 1) * step, spec.offset + spec.side.in);
  return static_cast<double>(std::max(0, to - from)) / step;
}

void coarse_taps(const PlaneAxisSpec& spec, int output, Taps& taps) {
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
  std::vector<std::int32_t> rounded;
  for (const double one : weight)
    rounded.push_back(static_cast<std::int32_t>(std::lround(one / sum * (1 << kPrecisionBits))));
  int first, last;
  trim(rounded.data(), static_cast<int>(rounded.size()), first, last);
  taps.start = from + first;
  taps.weight.assign(rounded.begin() + first, rounded.begin() + last + 1);
}

int most_taps(const PlaneAxisSpec& spec, const AxisWeights& weights) {
  if (spec.grid.smoothed) return weights.taps / 2 + 2;
  if (spec.grid.step == 1) return weights.taps;
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
  int count = 0;  // outputs
};

// As many outputs from `first` on as fit: four taps of each within shape.bytes of each other.
Lanes lanes_from(const PlaneAxis& axis, const WindowShape& shape, int first) {
  int low = axis.start[static_cast<std::size_t>(first)], high = low, count = 1;
  for (; count < shape.lanes && first + count < axis.count(); ++count) {
    const int start = axis.start[static_cast<std::size_t>(first + count)];
    if (std::max(high, start) - std::min(low, start) + 4 > shape.bytes) break;
    low = std::min(low, start);
    high = std::max(high, start);
  }
  return {low, count};
}

void pack_lane(const PlaneAxis& axis, int output, int base, std::uint8_t* at, int vector_bytes) {
  const std::size_t i = static_cast<std::size_t>(output);
  for (int t = 0; t < 4; ++t) at[t] = static_cast<std::uint8_t>(axis.start[i] - base + t);
  for (int t = 0; t < axis.taps; ++t) {
    const int weight = axis.weight[i * static_cast<std::size_t>(axis.taps) + static_cast<std::size_t>(t)];
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
  Taps taps;
  for (int i = 0; i < spec.side.count; ++i) {
    const int output = spec.flip == Flip::kHorizontal ? spec.side.count - 1 - i : i;
    if (spec.grid.smoothed)
      smoothed_taps(spec, weights, output, taps);
    else if (spec.grid.step == 1)
      plain_taps(spec, weights, output, taps);
    else
      coarse_taps(spec, output, taps);
    append(taps, spec.grid.smoothed ? kPrecisionBits + 2 : kPrecisionBits, axis);
  }
  axis.begin = *std::min_element(axis.start.begin(), axis.start.end());
  axis.end = *std::max_element(axis.last.begin(), axis.last.end()) + 1;
}

void pack_windows(const WindowShape& shape, PlaneAxis& axis) {
  const int vector_bytes = shape.vector_bytes();
  axis.blocks = (axis.taps + 3) / 4;
  const std::size_t unit = static_cast<std::size_t>(axis.vectors() * vector_bytes);
  for (int output = 0; output < axis.count();) {
    const Lanes lanes = lanes_from(axis, shape, output);
    const bool full = lanes.count == shape.lanes;
    if (full && axis.full_windows == static_cast<int>(axis.windows.size())) ++axis.full_windows;
    const std::size_t index = axis.windows.size(), together = static_cast<std::size_t>(shape.together);
    axis.windows.push_back({lanes.base - axis.begin, output});
    axis.lines.resize(((index / together + 1) * unit + sizeof(Line) - 1) / sizeof(Line));
    std::uint8_t* at = axis.lines.front().bytes + index / together * unit +
                       index % together * static_cast<std::size_t>(4 * shape.lanes);
    for (int lane = 0; lane < lanes.count; ++lane, at += 4)
      pack_lane(axis, output + lane, lanes.base, at, vector_bytes);
    output += lanes.count;
  }
}

}  // namespace millrace::kernels
