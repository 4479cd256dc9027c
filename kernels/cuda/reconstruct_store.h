// Finished pixels to tensor elements.
#pragma once

#include "kernels/cuda/reconstruct_rows.h"

namespace millrace::kernels::cuda {

MILLRACE_HD inline void load_store(const TileWork& work, Thread thread) {
  std::uint32_t* const values = work.at<std::uint32_t>(work.shape.store);
  for (int i = thread.index; i < 256 * channels_of(work.args.spec); i += kTileThreads) values[i] = work.args.store[i];
}

// Stores two pixels at a time, in one access a channel where they lie side by side.
struct PixelStore {
  std::uint8_t* tensor;         // red of the tile's first pixel, or grey
  const std::uint32_t* values;  // of red, or grey
  int column, row, channel;     // bytes from pixel to pixel, and from red to green to blue
  int value_step;               // from the values of red to those of green to those of blue
  int width;                    // of the tile
  int element_bytes;
  bool grey, converts;
  bool in_pairs;

  // Pixels (x, y) and, where there is one, (x + 1, y) of the tile. x is even.
  MILLRACE_HD void operator()(int x, int y, PixelPair pair) const {
    if (converts) {
      for (Channels& pixel : pair.at) pixel = to_rgb(pixel.at[0], pixel.at[1], pixel.at[2]);
    }
    if (grey) {
      for (Channels& pixel : pair.at) pixel.at[0] = luma_of(pixel);
    }
    std::uint8_t* const at = tensor + (y * row + x * column);
    if (!in_pairs || x + 1 >= width) {
      put_each(at, pair.at[0]);
      if (x + 1 < width) put_each(at + column, pair.at[1]);
    } else if (column > 0) {
      put_both(at, pair.at[0], pair.at[1]);
    } else {
      put_both(at + column, pair.at[1], pair.at[0]);
    }
  }

 private:
  MILLRACE_HD int channels() const { return grey ? 1 : 3; }

  MILLRACE_HD void put_each(std::uint8_t* at, const Channels& pixel) const {
    for (int c = 0; c < 3; ++c) {
      if (c == channels()) break;
      const std::uint32_t bits = values[c * value_step + pixel.at[c]];
      if (element_bytes == 1) store_aligned(at, static_cast<std::uint8_t>(bits));
      if (element_bytes == 2) store_aligned(at, static_cast<std::uint16_t>(bits));
      if (element_bytes == 4) store_aligned(at, bits);
      at += channel;
    }
  }

  MILLRACE_HD void put_both(std::uint8_t* at, const Channels& low, const Channels& high) const {
    const auto put_all = [&](auto join) {
      for (int c = 0; c < 3; ++c) {
        if (c == channels()) break;
        const std::uint32_t* const of_channel = values + c * value_step;
        store_aligned(at, join(of_channel[low.at[c]], of_channel[high.at[c]]));
        at += channel;
      }
    };
    using Bits = std::uint32_t;
    if (element_bytes == 1) put_all([](Bits a, Bits b) { return static_cast<std::uint16_t>(a | b << 8); });
    if (element_bytes == 2) put_all([](Bits a, Bits b) { return a | b << 16; });
    if (element_bytes == 4) put_all([](Bits a, Bits b) { return PackedPair{{a, b}}; });
  }
};

MILLRACE_HD inline PixelStore pixel_store(const TileWork& work) {
  const Shape& shape = work.shape;
  const TensorSpec& spec = work.args.spec;
  const TensorPlaces& places = shape.places;
  const int element = spec.element_bytes, pair = 2 * element;
  std::uint8_t* const first = work.args.tensors + work.job.output +
                              (places.origin + shape.tile.top * places.row + shape.tile.left * places.column);
  const auto lowest = reinterpret_cast<std::uintptr_t>(places.column < 0 ? first - element : first);
  const bool beside = places.column == element || places.column == -element;
  const bool in_pairs =
      beside && lowest % static_cast<unsigned>(pair) == 0 && places.row % pair == 0 && places.channel % pair == 0;
  const bool bgr = spec.channels == ChannelOrder::kBgr;
  return {.tensor = bgr ? first + std::ptrdiff_t{2} * places.channel : first,
          .values = work.at<std::uint32_t>(shape.store) + (bgr ? 512 : 0),
          .column = places.column,
          .row = places.row,
          .channel = bgr ? -places.channel : places.channel,
          .value_step = bgr ? -256 : 256,
          .width = shape.tile.width,
          .element_bytes = element,
          .grey = spec.channels == ChannelOrder::kGrey,
          .converts = shape.converts_last,
          .in_pairs = in_pairs};
}

}  // namespace millrace::kernels::cuda
