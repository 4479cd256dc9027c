#include "kernels/tensor/axis_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::kernels {
namespace {

struct Window {
  int start;
  int count;
};

// The samples whose centres lie within `support` of `centre`, both ends rounded to whole samples and clipped to the
// picture.
Window window_around(double centre, double support, int in) {
  const int begin = std::max(static_cast<int>(centre - support + 0.5), 0);
  const int end = std::min(static_cast<int>(centre + support + 0.5), in);
  return {begin, end - begin};
}

std::int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kPrecisionBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

AxisWeights copied(const AxisSpec& spec) {
  AxisWeights result;
  result.start.resize(spec.count);
  result.weight.assign(spec.count, 1 << kPrecisionBits);
  for (int i = 0; i < spec.count; ++i) result.start[i] = spec.first + i;
  return result;
}

// Pillow steps along the source by repeated addition, so the last bits of the position depend on every step before.
AxisWeights nearest(const AxisSpec& spec) {
  AxisWeights result = copied(spec);
  const double step = static_cast<double>(spec.in) / spec.out;
  double position = step * 0.5;
  for (int i = 0; i < spec.first + spec.count; ++i) {
    if (i >= spec.first) result.start[i - spec.first] = std::min(static_cast<int>(position), spec.in - 1);
    position += step;
  }
  return result;
}

// Every output gets the same number of taps: a window shorter than the longest is padded with weights of 0, moved so
// that it stays in the picture.
void append_padded(AxisWeights& result, int i, const Window& window, const std::vector<double>& weights, double sum,
                   int in) {
  const int start = std::min(window.start, in - result.taps);
  std::int32_t* out = &result.weight[static_cast<std::size_t>(i) * result.taps] + (window.start - start);
  for (int t = 0; t < window.count; ++t) out[t] = to_fixed(sum != 0 ? weights[t] / sum : weights[t]);
  result.start[i] = start;
}

double triangle(double x) {
  const double d = std::fabs(x);
  return d < 1 ? 1 - d : 0;
}

}  // namespace

double filter_support(Filter filter) {
  switch (filter) {
    case Filter::kNearest:
    case Filter::kBox:
      return 0.5;
    case Filter::kBilinear:
    case Filter::kHamming:
      return 1;
    case Filter::kBicubic:
      return 2;
    case Filter::kLanczos:
      return 3;
  }
  return 0.5;
}

double filter_value(Filter filter, double x) {
  const double d = std::fabs(x);
  switch (filter) {
    case Filter::kNearest:
    case Filter::kBox:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Filter::kBilinear:
      return triangle(x);
    case Filter::kHamming:  // its two constants are single precision in Pillow
      if (d == 0) return 1;
      return d < 1 ? sinc(d) * (0.54F + 0.46F * std::cos(d * std::numbers::pi)) : 0;
    case Filter::kBicubic:  // Keys' convolution kernel, a = -1/2
      if (d < 1) return (1.5 * d - 2.5) * d * d + 1;
      return d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0;
    case Filter::kLanczos:
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

namespace {

// `value(x)`: filter_value() of spec.filter, known to the compiler so that it comes into the loop.
template <class Value>
AxisWeights filtered(const AxisSpec& spec, Value&& value) {
  const double scale = static_cast<double>(spec.in) / spec.out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = filter_support(spec.filter) * filter_scale;
  const double unscale = 1.0 / filter_scale;
  const auto centre_of = [&](int i) { return (spec.first + i + 0.5) * scale; };

  AxisWeights result;
  std::vector<Window> windows(spec.count);
  for (int i = 0; i < spec.count; ++i) {
    windows[i] = window_around(centre_of(i), support, spec.in);
    result.taps = std::max(result.taps, windows[i].count);
  }
  result.start.resize(spec.count);
  result.weight.assign(static_cast<std::size_t>(spec.count) * result.taps, 0);
  std::vector<double> weights(result.taps);
  for (int i = 0; i < spec.count; ++i) {
    const double centre = centre_of(i);
    const Window window = windows[i];
    double sum = 0;
    for (int t = 0; t < window.count; ++t) {
      weights[t] = value((t + window.start - centre + 0.5) * unscale);
      sum += weights[t];
    }
    append_padded(result, i, window, weights, sum, spec.in);
  }
  return result;
}

}  // namespace

AxisWeights axis_weights(const AxisSpec& spec) {
  if (spec.in == spec.out) return copied(spec);
  if (spec.filter == Filter::kNearest) return nearest(spec);
  if (spec.filter == Filter::kBilinear) return filtered(spec, triangle);
  return filtered(spec, [&](double x) { return filter_value(spec.filter, x); });
}

bool may_leave_bytes(const AxisWeights& weights) {
  constexpr int kMany = 1 << 13;
  return weights.taps > kMany ||
         std::any_of(weights.weight.begin(), weights.weight.end(), [](std::int32_t weight) { return weight < 0; });
}

}  // namespace millrace::kernels
