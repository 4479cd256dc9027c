// Steps that change each pixel by itself: those that map values, by tables that 256 threads make, and colours. Values
// are those of kernels/augment: Pillow's ImageOps, ImageEnhance and Convert.c.
#pragma once

#include "kernels/cuda/augment/augment_walk.h"

namespace millrace::kernels::cuda::augmenting {

// Of a step that maps all values alike.
MILLRACE_HD inline int mapped(const AugmentStep& step, int value) {
  if (step.kind == AugmentKind::kPosterize) return value & step.value;
  if (step.kind == AugmentKind::kBrightness) return blended(0, value, step.factor);
  const bool is_below = static_cast<float>(value) < step.factor;
  if (step.kind == AugmentKind::kSolarizeAdd) return is_below ? clamped(value + step.value, 0, 255) : value;
  return is_below ? value : 255 - value;
}

template <class Block>
MILLRACE_KERNEL void map_pixels(Block& block, const StepWork& work) {
  const auto& shared = block.template shared<AugmentShared>();
  change_pixels(block, work, [&](std::uint32_t pixel) {
    return pixel_of(shared.table[0][channel_of(pixel, 0)], shared.table[1][channel_of(pixel, 1)],
                    shared.table[2][channel_of(pixel, 2)]);
  });
}

// A table that other steps may be chained to. The thread that made an entry changes it.
template <class Block>
MILLRACE_KERNEL void map_values(Block& block, const StepWork& work) {
  auto& shared = block.template shared<AugmentShared>();
  block.each([&](int i) {
    for (auto& table : shared.table) {
      const int before = work.step.chained != 0 ? table[i] : i;
      table[i] = static_cast<std::uint8_t>(mapped(work.step, before));
    }
  });
  if (work.step.is_held == 0) map_pixels(block, work);
}

// With the mean of the picture's grey values. A thread's sum fits 32 bits: pictures have up to 2^26 pixels.
template <class Block>
MILLRACE_KERNEL void contrast(Block& block, const StepWork& work) {
  auto& shared = block.template shared<AugmentShared>();
  block.each([&](int thread) {
    if (thread == 0) shared.sum = 0;
  });
  block.each([&](int thread) {
    unsigned sum = 0;
    for_pixels(thread, work, [&](std::uint32_t pixel) { sum += static_cast<unsigned>(luma_in(pixel)); });
    Block::atomic_add(&shared.sum, static_cast<unsigned long long>(sum));
  });
  block.each([&](int i) {
    const double mean = static_cast<double>(shared.sum) / static_cast<double>(work.pixels());
    const int value = blended(static_cast<int>(mean + 0.5), i, work.step.factor);
    for (auto& table : shared.table) table[i] = static_cast<std::uint8_t>(value);
  });
  if (work.step.is_held == 0) map_pixels(block, work);
}

struct ValueRange3 {
  int least[3], most[3];
};

MILLRACE_HD inline int stretched(int value, int low, int high) {
  if (high <= low) return value;
  const double scale = 255.0 / (high - low), offset = product(-low, scale);
  return clamped(static_cast<int>(product(value, scale) + offset), 0, 255);
}

template <class Block>
MILLRACE_KERNEL void autocontrast(Block& block, const StepWork& work) {
  auto& shared = block.template shared<AugmentShared>();
  auto range = block.template per_thread<ValueRange3>();
  auto one = block.template per_thread<int>();
  block.each([&](int thread) {
    ValueRange3 own{{255, 255, 255}, {0, 0, 0}};
    for_pixels(thread, work, [&](std::uint32_t pixel) {
      for (int c = 0; c < 3; ++c) {
        const int value = channel_of(pixel, c);
        if (value < own.least[c]) own.least[c] = value;
        if (value > own.most[c]) own.most[c] = value;
      }
    });
    range[thread] = own;
  });
  for (int c = 0; c < 3; ++c) {
    block.each([&](int thread) { one[thread] = range[thread].least[c]; });
    const int low = block.min_of(one);
    block.each([&](int thread) { one[thread] = -range[thread].most[c]; });
    const int high = -block.min_of(one);
    block.each([&](int i) { shared.table[c][i] = static_cast<std::uint8_t>(stretched(i, low, high)); });
  }
  if (work.step.is_held == 0) map_pixels(block, work);
}

template <class Block>
MILLRACE_KERNEL void equalize(Block& block, const StepWork& work) {
  auto& shared = block.template shared<AugmentShared>();
  auto before = block.template per_thread<int>(), from_last = block.template per_thread<int>();
  block.each([&](int i) {
    for (auto& counts : shared.counts) counts[i] = 0;
  });
  block.each([&](int thread) {
    for_pixels(thread, work, [&](std::uint32_t pixel) {
      for (int c = 0; c < 3; ++c) Block::atomic_add(&shared.counts[c][channel_of(pixel, c)], 1U);
    });
  });
  for (int c = 0; c < 3; ++c) {
    block.each([&](int i) {
      before[i] = static_cast<int>(shared.counts[c][i]);
      from_last[i] = before[i] != 0 ? 255 - i : 256;
    });
    const int last = 255 - block.min_of(from_last);
    block.exclusive_sum(before);
    block.each([&](int i) {
      const int step = (work.pixels() - static_cast<int>(shared.counts[c][last])) / 255;
      const int value = step == 0 ? i : (step / 2 + before[i]) / step;
      shared.table[c][i] = static_cast<std::uint8_t>(value < 255 ? value : 255);
    });
  }
  if (work.step.is_held == 0) map_pixels(block, work);
}

// Image.convert("HSV"), on, and back: the integers of kernels/augment/targets/hue_loop.h, which says why they are
// Pillow's floats.
MILLRACE_HD inline int hue_part(int most, int part, float unit) {
  return static_cast<int>(float_product(static_cast<float>(most * part), unit) + 0.5F);
}
MILLRACE_HD inline std::uint32_t turned_hue(std::uint32_t pixel, int shift, const std::uint32_t* below) {
  const int r = channel_of(pixel, 0), g = channel_of(pixel, 1), b = channel_of(pixel, 2);
  const int rg_most = r > g ? r : g, rg_least = r < g ? r : g;
  const int most = rg_most > b ? rg_most : b, least = rg_least < b ? rg_least : b;
  if (most == least) return pixel;
  const int range = most - least;
  const int difference = r == most ? g - b : g == most ? b - r : r - g;
  const int sixths = difference + (r == most ? 0 : g == most ? 2 * range : 4 * range);
  const auto numerator = static_cast<unsigned>(85 * (sixths < 0 ? sixths + 6 * range : sixths));
  const unsigned divisor = 2 * static_cast<unsigned>(range), quotient = numerator / divisor;
  const bool is_whole = quotient * divisor == numerator;
  const int h = static_cast<int>(quotient - (is_whole ? below[quotient / 32] >> (quotient % 32) & 1 : 0));
  const int s = static_cast<int>(static_cast<unsigned>(255 * range) / static_cast<unsigned>(most));

  const int turned = (h + shift) & 0xFF, sector = turned * 1543 >> 16;  // 2 turned / 85
  const int n = 2 * turned - 85 * sector;
  const int p = hue_part(most, 255 - s, 1.0F / 255.0F);
  const int q = hue_part(most, 21675 - s * n, 1.0F / 21675.0F);
  const int t = hue_part(most, 21675 - s * (85 - n), 1.0F / 21675.0F);
  switch (sector) {
    case 1:
      return pixel_of(q, most, p);
    case 2:
      return pixel_of(p, most, t);
    case 3:
      return pixel_of(p, q, most);
    case 4:
      return pixel_of(t, p, most);
    case 5:
      return pixel_of(most, p, q);
    default:  // 0 and 6
      return pixel_of(most, t, p);
  }
}

MILLRACE_HD inline std::uint32_t saturated(std::uint32_t pixel, float factor) {
  const int grey = luma_in(pixel);
  return pixel_of(blended(grey, channel_of(pixel, 0), factor), blended(grey, channel_of(pixel, 1), factor),
                  blended(grey, channel_of(pixel, 2), factor));
}

template <class Block>
MILLRACE_KERNEL void change_colours(Block& block, const StepWork& work) {
  const AugmentStep& step = work.step;
  if (step.kind == AugmentKind::kHue) {
    change_pixels(block, work, [&](std::uint32_t pixel) { return turned_hue(pixel, step.value, work.tables); });
  } else if (step.kind == AugmentKind::kSaturation) {
    change_pixels(block, work, [&](std::uint32_t pixel) { return saturated(pixel, step.factor); });
  } else {
    change_pixels(block, work, [](std::uint32_t pixel) {
      const int grey = luma_in(pixel);
      return pixel_of(grey, grey, grey);
    });
  }
}

// The weighted sum of pictures in their order, blended into the first of them.
MILLRACE_HD inline FourPixels mixed(const StepWork& work, int at) {
  float sums[4][3] = {};
  MILLRACE_ROLLED for (int i = 0; i < work.step.value; ++i) {
    const auto four = load_aligned<FourPixels>(work.buffer(work.tables[2 * i]) + at);
    const float weight = float_in(work.tables + 2 * i + 1);
    for (int k = 0; k < 4; ++k) {
      for (int c = 0; c < 3; ++c) sums[k][c] += float_product(weight, static_cast<float>(channel_of(four.at[k], c)));
    }
  }
  auto four = load_aligned<FourPixels>(work.from + at);
  for (int k = 0; k < 4; ++k) {
    const auto value = [&](int c) {
      const int sum = static_cast<int>(sums[k][c] < 255.0F ? sums[k][c] : 255.0F);
      return blended(channel_of(four.at[k], c), sum, work.step.factor);
    };
    four.at[k] = pixel_of(value(0), value(1), value(2));
  }
  return four;
}

template <class Block>
MILLRACE_KERNEL void mix_pictures(Block& block, const StepWork& work) {
  block.each([&](int thread) {
    for_fours(thread, work.pixels(), [&](int at) { store_aligned(work.to + at, mixed(work, at)); });
  });
}

}  // namespace millrace::kernels::cuda::augmenting
