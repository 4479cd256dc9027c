// Where the picture comes from and where it goes: a canvas around the reconstructed picture, and tensor elements.
#pragma once

#include "kernels/cuda/augment/augment_walk.h"
#include "kernels/cuda/reconstruct/reconstruct_store.h"

namespace millrace::kernels::cuda {

// Which of `count` pixels stands at `position`, which may lie beyond them; -1: the fill. As pad_picture() of
// daemon/backend/cpu/making has it. REQUIRES: neither has more than 29 bits.
MILLRACE_HD inline int padded_source(int position, int count, PadMode mode) {
  if (position >= 0 && position < count) return position;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return position < 0 ? 0 : count - 1;
  const bool repeats_edge = mode == PadMode::kSymmetric;
  if (!repeats_edge && count == 1) return 0;
  const int period = 2 * count - (repeats_edge ? 0 : 2), rest = position % period;
  const int at = rest < 0 ? rest + period : rest;
  return at < count ? at : period - (repeats_edge ? 1 : 0) - at;
}

namespace augmenting {

// A pixel of the picture on its canvas.
MILLRACE_HD inline std::uint32_t shown_pixel(const AugmentArgs& args, const PictureJob& job, int x, int y) {
  if (job.is_padded != 0) {
    x = padded_source(job.shown_left + x, job.resized_width, job.mode);
    y = padded_source(job.shown_top + y, job.resized_height, job.mode);
    if (x < 0 || y < 0) return job.fill;
    x -= job.inner_left;
    y -= job.inner_top;
  }
  const std::uint64_t pixel =
      static_cast<std::uint64_t>(y) * static_cast<std::uint64_t>(job.inner_width) + static_cast<std::uint64_t>(x);
  const std::uint8_t* const at = args.pictures + job.picture + 3 * pixel;
  return pixel_of(at[0], at[1], at[2]);
}

// Where elements of a job's tensor are, in bytes from its first.
struct ElementPlaces {
  TensorSpec spec;
  int width, element, column, row, channel;
  int frames, frame;  // how many times an element is stored, so many bytes apart

  MILLRACE_HD ElementPlaces(const TensorSpec& of_all, const PictureJob& job)
      : spec(of_all), width(job.width), element(of_all.element_bytes), frames(1), frame(0) {
    const bool planes = spec.layout == Layout::kNchw;
    column = planes ? element : element * channels_of(spec);
    row = column * job.width;
    channel = planes ? row * job.height : element;
    if (!has_patches(spec)) return;
    frames = spec.patches.temporal;
    frame = element * spec.patches.height * spec.patches.width;
    channel = frame * frames;
  }

  MILLRACE_HD int of(int x, int y) const {
    if (!has_patches(spec)) return y * row + x * column;
    return element * (place_in_patches(spec, width, Axis::kColumns, x) + place_in_patches(spec, width, Axis::kRows, y));
  }
};

MILLRACE_HD inline void put_element(std::uint8_t* at, int bytes, std::uint32_t bits) {
  if (bytes == 1) store_aligned(at, static_cast<std::uint8_t>(bits));
  if (bytes == 2) store_aligned(at, static_cast<std::uint16_t>(bits));
  if (bytes == 4) store_aligned(at, bits);
}

// `values`: of each channel, 256.
MILLRACE_HD inline void put_pixel(const ElementPlaces& places, std::uint8_t* at, const std::uint32_t* values,
                                  std::uint32_t pixel) {
  const ChannelOrder order = places.spec.channels;
  for (int c = 0; c < 3; ++c) {
    if (c == channels_of(places.spec)) break;
    const int colour = order == ChannelOrder::kBgr ? 2 - c : c;
    const int value = order == ChannelOrder::kGrey ? luma_in(pixel) : channel_of(pixel, colour);
    std::uint8_t* frame = at + c * places.channel;
    MILLRACE_ROLLED for (int i = 0; i < places.frames; ++i, frame += places.frame)
        put_element(frame, places.element, values[256 * c + value]);
  }
}

template <class Block>
MILLRACE_KERNEL void load_picture(Block& block, const AugmentArgs& args, const PictureJob& job) {
  auto* const to = reinterpret_cast<std::uint32_t*>(args.scratch + job.scratch);
  block.each([&](int thread) {
    copy_places(
        thread, job.width, job.height, [&](int x, int y) { return shown_pixel(args, job, x, y); },
        [&](int x, int y, std::uint32_t pixel) { to[y * job.width + x] = pixel; });
  });
}

template <class Block>
MILLRACE_KERNEL void store_picture(Block& block, const AugmentArgs& args, const PictureJob& job) {
  auto& shared = block.template shared<AugmentShared>();
  const ElementPlaces places(args.spec, job);
  std::uint8_t* const tensor = args.tensors + job.output;
  const std::uint32_t* const from =
      reinterpret_cast<const std::uint32_t*>(args.scratch + job.scratch) + std::uint64_t{job.result} * job.buffer_words;
  block.each([&](int i) {
    for (int c = 0; c < channels_of(places.spec); ++c) shared.store[256 * c + i] = args.store[256 * c + i];
  });
  block.each([&](int thread) {
    copy_places(
        thread, job.width, job.height,
        [&](int x, int y) { return job.steps == 0 ? shown_pixel(args, job, x, y) : from[y * job.width + x]; },
        [&](int x, int y, std::uint32_t pixel) { put_pixel(places, tensor + places.of(x, y), shared.store, pixel); });
  });
}

// Boxes one after the other: the last one counts.
template <class Block>
MILLRACE_KERNEL void erase_boxes(Block& block, const AugmentArgs& args, const PictureJob& job) {
  const ElementPlaces places(args.spec, job);
  std::uint8_t* const tensor = args.tensors + job.output;
  for (std::uint32_t i = 0; i < job.boxes; ++i) {
    const ErasedBox& box = args.boxes[job.first_box + i];
    block.each([&](int thread) {
      for_places(thread, box.width, box.height, [&](int x, int y) {
        std::uint8_t* const at = tensor + places.of(box.left + x, box.top + y);
        for (int c = 0; c < 3; ++c) {
          if (c == channels_of(places.spec)) break;
          put_element(at + c * places.channel, places.element, box.element[c]);
        }
      });
    });
  }
}

}  // namespace augmenting
}  // namespace millrace::kernels::cuda
