// What the steps of augmentation share: a block's picture, ways through it, and arithmetic that is never fused.
#pragma once

#include <cstdint>

#include "kernels/cuda/augment/augment_args.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/reconstruct/axis.h"

namespace millrace::kernels::cuda::augmenting {

// Of a pixel's word.
MILLRACE_HD constexpr int channel_of(std::uint32_t pixel, int channel) {
  return static_cast<int>(pixel >> (8 * channel) & 0xFF);
}
MILLRACE_HD constexpr std::uint32_t pixel_of(int red, int green, int blue) {
  return static_cast<std::uint32_t>(red) | static_cast<std::uint32_t>(green) << 8 |
         static_cast<std::uint32_t>(blue) << 16;
}

MILLRACE_HD constexpr int luma_in(std::uint32_t pixel) {
  return (channel_of(pixel, 0) * 19595 + channel_of(pixel, 1) * 38470 + channel_of(pixel, 2) * 7471 + 0x8000) >> 16;
}

MILLRACE_HD constexpr int clamped(int value, int least, int most) {
  return value < least ? least : value > most ? most : value;
}

// As product() of axis.h.
MILLRACE_HD inline float float_product(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// Pillow's Image.blend.
MILLRACE_HD inline int blended(int degenerate, int value, float factor) {
  const float all = static_cast<float>(degenerate) + float_product(factor, static_cast<float>(value - degenerate));
  const float positive = all > 0.0F ? all : 0.0F;
  return static_cast<int>(positive < 255.0F ? positive : 255.0F);
}

MILLRACE_HD inline float float_in(const std::uint32_t* words) {
  float value;
  std::memcpy(&value, words, sizeof value);
  return value;
}
// Low word first.
MILLRACE_HD inline double double_in(const std::uint32_t* words) {
  const std::uint64_t bits = words[0] | std::uint64_t{words[1]} << 32;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A step, and what it works on.
struct StepWork {
  const AugmentStep& step;
  const std::uint32_t* tables;
  std::uint32_t* buffers;
  std::uint32_t buffer_words;
  const std::uint32_t* from;
  std::uint32_t* to;
  int width, height;  // of the result

  MILLRACE_HD StepWork(const AugmentArgs& args, const PictureJob& job, std::uint32_t number)
      : step(args.steps[job.first_step + number]),
        tables(args.tables + step.table),
        buffers(reinterpret_cast<std::uint32_t*>(args.scratch + job.scratch)),
        buffer_words(job.buffer_words),
        from(buffer(step.from)),
        to(buffer(step.to)),
        width(step.width),
        height(step.height) {}

  MILLRACE_HD std::uint32_t* buffer(std::uint32_t number) const {
    return buffers + std::uint64_t{number} * buffer_words;
  }
  MILLRACE_HD int pixels() const { return width * height; }
  MILLRACE_HD bool has(int x, int y) const { return x >= 0 && x < width && y >= 0 && y < height; }
};

// Pixels that a thread takes at once, so that it waits for memory once. Buffers are whole ones.
struct alignas(16) FourPixels {
  std::uint32_t at[4];
};

// function(at) for this thread's fours of neighbouring pixels, the first of which is `at`. The last one may reach beyond
// the picture, but not beyond its buffer.
template <class Function>
MILLRACE_HD void for_fours(int thread, int pixels, Function function) {
  MILLRACE_ROLLED for (int at = 4 * thread; at < pixels; at += 4 * kAugmentThreads) function(at);
}

// function(pixel) for each pixel of this thread.
template <class Function>
MILLRACE_HD void for_pixels(int thread, const StepWork& work, Function function) {
  for_fours(thread, work.pixels(), [&](int at) {
    const auto four = load_aligned<FourPixels>(work.from + at);
    for (int k = 0; k < 4; ++k) {
      if (at + k < work.pixels()) function(four.at[k]);
    }
  });
}

// function(x, y) for each place of this thread: a warp a row.
template <class Function>
MILLRACE_HD void for_places(int thread, int width, int height, Function function) {
  MILLRACE_ROLLED for (int y = thread / kWarp; y < height; y += kAugmentThreads / kWarp) {
    MILLRACE_ROLLED for (int x = thread % kWarp; x < width; x += kWarp) function(x, y);
  }
}

// write(x, y, read(x, y)) likewise, with four pixels read before one is written.
template <class Read, class Write>
MILLRACE_HD void copy_places(int thread, int width, int height, Read read, Write write) {
  MILLRACE_ROLLED for (int y = thread / kWarp; y < height; y += kAugmentThreads / kWarp) {
    MILLRACE_ROLLED for (int first = thread % kWarp; first < width; first += 4 * kWarp) {
      std::uint32_t pixels[4];
      for (int k = 0; k < 4; ++k) {
        if (const int x = first + k * kWarp; x < width) pixels[k] = read(x, y);
      }
      for (int k = 0; k < 4; ++k) {
        if (const int x = first + k * kWarp; x < width) write(x, y, pixels[k]);
      }
    }
  }
}

// Each pixel becomes function(pixel), which depends on nothing else.
template <class Block, class Function>
MILLRACE_KERNEL void change_pixels(Block& block, const StepWork& work, Function function) {
  block.each([&](int thread) {
    for_fours(thread, work.pixels(), [&](int at) {
      auto four = load_aligned<FourPixels>(work.from + at);
      for (std::uint32_t& pixel : four.at) pixel = function(pixel);
      store_aligned(work.to + at, four);
    });
  });
}

// Pixel (x, y) becomes function(x, y). REQUIRES: `from` and `to` are unlike, or it looks at no other pixel.
template <class Block, class Function>
MILLRACE_KERNEL void make_pixels(Block& block, const StepWork& work, Function function) {
  block.each([&](int thread) {
    copy_places(thread, work.width, work.height, function,
                [&](int x, int y, std::uint32_t pixel) { work.to[y * work.width + x] = pixel; });
  });
}

}  // namespace millrace::kernels::cuda::augmenting
