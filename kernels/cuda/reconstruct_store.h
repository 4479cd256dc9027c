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
  std::uint8_t* tensor;         // the tile's first pixel
  const std::uint32_t* values;  // of each channel
  TensorPlaces places;
  ChannelOrder channels;
  int width;  // of the tile
  int element_bytes;
  bool in_pairs;
  bool converts;

  // Pixels (x, y) and, where there is one, (x + 1, y) of the tile. x is even.
  MILLRACE_HD void operator()(int x, int y, PixelPair pair) const {
    if (converts) {
      for (Channels& pixel : pair.at) pixel = to_rgb(pixel.at[0], pixel.at[1], pixel.at[2]);
    }
    const bool both = x + 1 < width;
    std::uint8_t* const at = tensor + (y * places.row + x * places.column);
    if (channels == ChannelOrder::kGrey) return put(at, values[luma_of(pair.at[0])], values[luma_of(pair.at[1])], both);
    if (channels == ChannelOrder::kBgr) {
      for (Channels& pixel : pair.at) pixel = {{pixel.at[2], pixel.at[1], pixel.at[0]}};
    }
    put(at, values[pair.at[0].at[0]], values[pair.at[1].at[0]], both);
    put(at + places.channel, values[256 + pair.at[0].at[1]], values[256 + pair.at[1].at[1]], both);
    put(at + 2 * static_cast<std::int64_t>(places.channel), values[512 + pair.at[0].at[2]],
        values[512 + pair.at[1].at[2]], both);
  }

 private:
  MILLRACE_HD void put(std::uint8_t* at, std::uint32_t left, std::uint32_t right, bool both) const {
    if (in_pairs && both) return put_pair(places.column < 0 ? at + places.column : at, left, right);
    put_one(at, left);
    if (both) put_one(at + places.column, right);
  }
  MILLRACE_HD void put_pair(std::uint8_t* at, std::uint32_t left, std::uint32_t right) const {
    const std::uint32_t low = places.column < 0 ? right : left, high = places.column < 0 ? left : right;
    if (element_bytes == 1) store_as(at, static_cast<std::uint16_t>(low | high << 8));
    if (element_bytes == 2) store_as(at, low | high << 16);
    if (element_bytes == 4) store_as(at, PackedPair{{low, high}});
  }
  MILLRACE_HD void put_one(std::uint8_t* at, std::uint32_t bits) const {
    if (element_bytes == 1) store_as(at, static_cast<std::uint8_t>(bits));
    if (element_bytes == 2) store_as(at, static_cast<std::uint16_t>(bits));
    if (element_bytes == 4) store_as(at, bits);
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
  return {first,
          work.at<std::uint32_t>(shape.store),
          places,
          spec.channels,
          shape.tile.width,
          element,
          in_pairs,
          shape.converts_last};
}

}  // namespace millrace::kernels::cuda
