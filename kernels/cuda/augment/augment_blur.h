// Sharpness and the two blurs: Pillow's SMOOTH, torchvision's Gaussian in float32, and BoxBlur.c's extended boxes. Sums
// are integers, or floats in the order of kernels/augment.
#pragma once

#include "kernels/cuda/augment/augment_walk.h"

namespace millrace::kernels::cuda::augmenting {

// filter(SMOOTH) of a pixel that has neighbours all round: thirteenths, rounded, as in kernels/augment.
MILLRACE_HD inline std::uint32_t smoothed(const std::uint32_t* at, int width) {
  int sums[3] = {6, 6, 6};
  for (int y = -1; y <= 1; ++y) {
    for (int x = -1; x <= 1; ++x) {
      const std::uint32_t pixel = at[y * width + x];
      for (int c = 0; c < 3; ++c) sums[c] += channel_of(pixel, c) * (x == 0 && y == 0 ? 5 : 1);
    }
  }
  return pixel_of(sums[0] * 5042 >> 16, sums[1] * 5042 >> 16, sums[2] * 5042 >> 16);
}

template <class Block>
MILLRACE_KERNEL void sharpen(Block& block, const StepWork& work) {
  make_pixels(block, work, [&](int x, int y) {
    const std::uint32_t* const at = work.from + (y * work.width + x);
    const std::uint32_t pixel = *at;
    if (x == 0 || y == 0 || x == work.width - 1 || y == work.height - 1) return pixel;
    const std::uint32_t smooth = smoothed(at, work.width);
    const auto value = [&](int c) { return blended(channel_of(smooth, c), channel_of(pixel, c), work.step.factor); };
    return pixel_of(value(0), value(1), value(2));
  });
}

MILLRACE_HD constexpr int reflected(int at, int side) {
  return at < 0 ? -at : at < side ? at : 2 * (side - 1) - at;
}

// The middle first, then both values at a distance, by its weight.
struct WeighedValue {
  float sum;
  MILLRACE_HD void begin(float weight, float middle) { sum = float_product(middle, weight); }
  MILLRACE_HD void add(float weight, float before, float after) { sum += float_product(weight, before + after); }
};

MILLRACE_HD inline float* plane_of_floats(const StepWork& work, int c) {
  return reinterpret_cast<float*>(work.buffer(work.step.planes[c]));
}

// torchvision's blur along the rows, to three planes of floats.
template <class Block>
MILLRACE_KERNEL void weigh_across(Block& block, const StepWork& work) {
  block.each([&](int thread) {
    float* const planes[3] = {plane_of_floats(work, 0), plane_of_floats(work, 1), plane_of_floats(work, 2)};
    for_places(thread, work.width, work.height, [&](int x, int y) {
      const std::uint32_t* const row = work.from + y * work.width;
      const auto value = [](std::uint32_t pixel, int c) { return static_cast<float>(channel_of(pixel, c)); };
      WeighedValue sums[3];
      for (int c = 0; c < 3; ++c) sums[c].begin(float_in(work.tables), value(row[x], c));
      MILLRACE_BY_FOUR for (int i = 1; i <= work.step.value; ++i) {
        const std::uint32_t before = row[reflected(x - i, work.width)], after = row[reflected(x + i, work.width)];
        const float weight = float_in(work.tables + i);
        for (int c = 0; c < 3; ++c) sums[c].add(weight, value(before, c), value(after, c));
      }
      for (int c = 0; c < 3; ++c) planes[c][y * work.width + x] = sums[c].sum;
    });
  });
}

// Half to even: adding 2^23 leaves no bits behind the point.
MILLRACE_HD inline int rounded_value(float value) {
  constexpr float kWhole = 8388608.0F;
  const float whole = (value + kWhole) - kWhole;
  return static_cast<int>(whole < 255.0F ? whole : 255.0F);
}

template <class Block>
MILLRACE_KERNEL void weigh_down(Block& block, const StepWork& work) {
  block.each([&](int thread) {
    const float* const planes[3] = {plane_of_floats(work, 0), plane_of_floats(work, 1), plane_of_floats(work, 2)};
    for_places(thread, work.width, work.height, [&](int x, int y) {
      const int at = y * work.width + x;
      WeighedValue sums[3];
      for (int c = 0; c < 3; ++c) sums[c].begin(float_in(work.tables), planes[c][at]);
      MILLRACE_BY_FOUR for (int i = 1; i <= work.step.value; ++i) {
        const int before = reflected(y - i, work.height) * work.width + x;
        const int after = reflected(y + i, work.height) * work.width + x;
        const float weight = float_in(work.tables + i);
        for (int c = 0; c < 3; ++c) sums[c].add(weight, planes[c][before], planes[c][after]);
      }
      work.to[at] = pixel_of(rounded_value(sums[0].sum), rounded_value(sums[1].sum), rounded_value(sums[2].sum));
    });
  });
}

// One pass of an extended box down a part of a column, from row `top` to before row `bottom`. Beyond an edge is that
// edge's pixel.
struct BoxColumn {
  const std::uint32_t* from;  // of its first row
  std::uint32_t* to;
  int width, height, radius;
  std::uint32_t inner, outer;

  MILLRACE_HD std::uint32_t pixel(int y) const { return from[clamped(y, 0, height - 1) * width]; }

  MILLRACE_HD void blur(int top, int bottom) const {
    std::uint32_t sums[3] = {0, 0, 0};
    // Around the row above the first.
    MILLRACE_BY_FOUR for (int y = top - 1 - radius; y < top + radius; ++y) {
      const std::uint32_t more = pixel(y);
      for (int c = 0; c < 3; ++c) sums[c] += static_cast<std::uint32_t>(channel_of(more, c));
    }
    std::uint32_t last = pixel(top + radius);
    MILLRACE_ROLLED for (int y = top; y < bottom; y += kRows) {
      std::uint32_t before[kRows], after[kRows];
      for (int k = 0; k < kRows; ++k) {
        before[k] = pixel(y + k - radius - 1);
        after[k] = pixel(y + k + radius + 1);
      }
      for (int k = 0; k < kRows; ++k) {
        if (y + k < bottom) to[(y + k) * width] = next(sums, before[k], last, after[k]);
        last = after[k];
      }
    }
  }

 private:
  static constexpr int kRows = 4;  // that are read before one is written

  // Moves the sums on by a row.
  MILLRACE_HD std::uint32_t next(std::uint32_t (&sums)[3], std::uint32_t before, std::uint32_t last,
                                 std::uint32_t after) const {
    int values[3];
    for (int c = 0; c < 3; ++c) {
      sums[c] += static_cast<std::uint32_t>(channel_of(last, c) - channel_of(before, c));
      const auto ends = static_cast<std::uint32_t>(channel_of(before, c) + channel_of(after, c));
      values[c] = static_cast<int>((sums[c] * inner + ends * outer + (1U << 23)) >> 24);
    }
    return pixel_of(values[0], values[1], values[2]);
  }
};

// Neighbouring threads take neighbouring columns. Where there are fewer columns than threads, several take parts of one.
template <class Block>
MILLRACE_KERNEL void blur_box(Block& block, const StepWork& work) {
  constexpr int kShortest = 16;  // rows of a part
  const AugmentStep& step = work.step;
  const int wanted = kAugmentThreads / work.width, most = (work.height + kShortest - 1) / kShortest;
  const int parts = clamped(wanted, 1, most), rows = (work.height + parts - 1) / parts;
  block.each([&](int thread) {
    MILLRACE_ROLLED for (int task = thread; task < parts * work.width; task += kAugmentThreads) {
      const int x = task % work.width, top = task / work.width * rows;
      const BoxColumn column{work.from + x,
                             work.to + x,
                             work.width,
                             work.height,
                             step.place[0],
                             static_cast<std::uint32_t>(step.place[1]),
                             static_cast<std::uint32_t>(step.place[2])};
      column.blur(top, top + rows < work.height ? top + rows : work.height);
    }
  });
}

}  // namespace millrace::kernels::cuda::augmenting
