// Which samples of a crop's side make each output sample along it, and with what weight: bit-equal to axis_weights()
// of kernels/tensor, in the same order of operations, for the filters that need no sine. The others, and kNearest,
// whose positions depend on each other, come as tables from the host.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/host_device.h"
#include "kernels/tensor/axis_weights.h"

namespace millrace::kernels::cuda {

// Never fused with an addition, which would round differently.
MILLRACE_HD inline double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// Half the filter's width, in outputs.
MILLRACE_HD constexpr double support_of(Filter filter) {
  if (filter == Filter::kBilinear || filter == Filter::kHamming) return 1;
  if (filter == Filter::kBicubic) return 2;
  return filter == Filter::kLanczos ? 3 : 0.5;
}

// The filters whose weights are computed here.
MILLRACE_HD constexpr bool is_computed(Filter filter) {
  return filter == Filter::kBox || filter == Filter::kBilinear || filter == Filter::kBicubic;
}

MILLRACE_HD inline double value_of(Filter filter, double x) {
  const double d = std::fabs(x);
  if (filter == Filter::kBox) return x > -0.5 && x <= 0.5 ? 1 : 0;
  if (filter == Filter::kBilinear) return d < 1 ? 1 - d : 0;
  if (d < 1) return product(product(product(1.5, d) - 2.5, d), d) + 1;
  return d < 2 ? product(product(product(d - 5, d) + 8, d) - 4, -0.5) : 0;
}

MILLRACE_HD inline std::int32_t to_fixed(double weight) {
  const double scaled = product(weight, 1 << kPrecisionBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

// Neighbouring samples of the crop.
struct Window {
  int start, count;
  MILLRACE_HD int end() const { return start + count; }
};

// A table from the host: the number of taps, then each output's first sample, then each output's weights. AxisWeights,
// flat.
struct Side {
  int in;                     // samples of the crop
  int out;                    // that they are resampled to
  int first;                  // of the outputs: the tensor's first
  int count;                  // of the tensor
  const std::int32_t* table;  // nullptr: computed
  Filter filter;
  double scale, support, unscale;
  bool mirrored;  // the crop's samples are the picture's from the last to the first

  // No window has more samples.
  MILLRACE_HD int most_taps() const {
    if (table != nullptr) return table[0];
    if (in == out) return 1;
    const int most = static_cast<int>(2 * support) + 2;
    return most < in ? most : in;
  }

  // Of the tensor's sample i; where the side is mirrored, of its sample count - 1 - i. Windows count in the stored
  // picture, weights are those of the turned one: mirrored weights would be rounded differently.
  MILLRACE_HD Window window(int i) const { return turned(turned_window(turned(i))); }

  // weights[t * stride] of the window's sample t.
  MILLRACE_HD void weigh(int i, const Window& window, std::int32_t* weights, int stride) const {
    if (mirrored) weights += (window.count - 1) * stride;
    weigh_turned(turned(i), turned(window), weights, mirrored ? -stride : stride);
  }

 private:
  MILLRACE_HD int turned(int i) const { return mirrored ? count - 1 - i : i; }
  MILLRACE_HD Window turned(const Window& window) const {
    return {mirrored ? in - window.end() : window.start, window.count};
  }

  MILLRACE_HD Window turned_window(int i) const {
    if (table != nullptr) return {table[1 + i], table[0]};
    if (in == out) return {first + i, 1};
    const double centre = centre_of(i);
    const int begin = static_cast<int>(centre - support + 0.5), end = static_cast<int>(centre + support + 0.5);
    const int start = begin > 0 ? begin : 0;
    return {start, (end < in ? end : in) - start};
  }

  MILLRACE_HD void weigh_turned(int i, const Window& window, std::int32_t* weights, int stride) const {
    if (table != nullptr) {
      const std::int32_t* const from = table + 1 + count + static_cast<std::int64_t>(i) * table[0];
      MILLRACE_ROLLED for (int t = 0; t < window.count; ++t) weights[t * stride] = from[t];
    } else if (in == out) {
      weights[0] = 1 << kPrecisionBits;
    } else {
      weigh_filter(centre_of(i), window, weights, stride);
    }
  }

  MILLRACE_HD double centre_of(int i) const { return product(first + i + 0.5, scale); }
  MILLRACE_HD double value_at(double centre, int sample) const {
    return value_of(filter, product(sample - centre + 0.5, unscale));
  }
  MILLRACE_HD void weigh_filter(double centre, const Window& window, std::int32_t* weights, int stride) const {
    double sum = 0;
    MILLRACE_ROLLED for (int t = 0; t < window.count; ++t) sum += value_at(centre, window.start + t);
    MILLRACE_ROLLED for (int t = 0; t < window.count; ++t) {
      const double value = value_at(centre, window.start + t);
      weights[t * stride] = to_fixed(sum != 0 ? value / sum : value);
    }
  }
};

MILLRACE_HD inline Side make_side(int in, int out, int first, int count, Filter filter, const std::int32_t* table) {
  const double scale = static_cast<double>(in) / out, widened = scale > 1 ? scale : 1;
  return {in, out, first, count, table, filter, scale, product(support_of(filter), widened), 1.0 / widened, false};
}

}  // namespace millrace::kernels::cuda
