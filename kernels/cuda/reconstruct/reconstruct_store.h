// Finished pixels to tensor elements.
#pragma once

#include "kernels/cuda/reconstruct/reconstruct_rows.h"

namespace millrace::kernels::cuda {

MILLRACE_HD inline void load_store(const TileWork& work, Thread thread) {
  std::uint32_t* const values = work.at<std::uint32_t>(work.shape.store);
  for (int i = thread.index; i < 256 * channels_of(work.args.spec); i += kTileThreads) values[i] = work.args.store[i];
}

// In a tensor of patches, `width` columns wide: elements from its first column or row to column or row i.
MILLRACE_HD inline int place_in_patches(const TensorSpec& spec, int width, Axis axis, int i) {
  const PatchSpec& of = spec.patches;
  const bool across = axis == Axis::kColumns;
  const int patch = channels_of(spec) * of.temporal * of.height * of.width, line = of.merge * patch;
  const int group = across ? of.merge * line : width / of.width * line;
  const int samples = across ? of.width : of.height, number = i / samples;
  return number / of.merge * group + number % of.merge * (across ? patch : line) +
         i % samples * (across ? 1 : of.width);
}

MILLRACE_HD inline void load_patches(const TileWork& work, Thread thread) {
  const TensorSpec& spec = work.args.spec;
  if (!has_patches(spec)) return;
  const Shape& shape = work.shape;
  const Tile& tile = shape.tile;
  const bool swaps = (work.job.turn & kSwapsSides) != 0;
  const int room = rounded_up(tile.width, 2), element = spec.element_bytes;
  auto* const table = work.at<PatchTable>(shape.patches);
  if (thread.index == 0) *table = {spec.patches.temporal, element * spec.patches.height * spec.patches.width, room};
  auto* const places = reinterpret_cast<int*>(table + 1);
  MILLRACE_ROLLED for (int i = thread.index; i < room + tile.height; i += kTileThreads) {
    const bool stored_column = i < room, across = stored_column != swaps;
    const int at = stored_column ? tile.left + i : tile.top + i - room;
    const int last = (across ? work.job.tensor_width : work.job.tensor_height) - 1;
    const bool mirrored = stored_column ? shape.across.mirrored : shape.down.mirrored;
    const bool reversed = mirrored != (across && work.job.flip != 0);
    places[i] = element * place_in_patches(spec, work.job.tensor_width, across ? Axis::kColumns : Axis::kRows,
                                           reversed ? last - at : at);
  }
}

// Stores two pixels at a time, in one access a channel where they lie side by side.
struct PixelStore {
  std::uint8_t* tensor;         // red of the tile's first pixel, or grey; with patches, of the tensor's first
  const PatchTable* patches;    // nullptr: none
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
    const bool both = x + 1 < width;
    if (patches == nullptr) return put(tensor + (y * row + x * column), column, pair, both);
    const int* const places = patches->column(x);
    std::uint8_t* at = tensor + (places[0] + *patches->row(y));
    for (int frame = 0; frame < patches->frames; ++frame, at += patches->frame)
      put(at, places[1] - places[0], pair, both);
  }

 private:
  // `step`: bytes from the first pixel to the second.
  MILLRACE_HD void put(std::uint8_t* at, int step, const PixelPair& pair, bool both) const {
    if (!in_pairs || !both) {
      put_each(at, pair.at[0]);
      if (both) put_each(at + step, pair.at[1]);
    } else if (step > 0) {
      put_both(at, pair.at[0], pair.at[1]);
    } else {
      put_both(at + step, pair.at[1], pair.at[0]);
    }
  }

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

// Whether pixels 2 n and 2 n + 1 of each row of the tile are stored in one access. `first`: where the tile's is.
MILLRACE_HD inline bool stores_pairs(const TileWork& work, const std::uint8_t* first) {
  const TensorPlaces& places = work.shape.places;
  const int element = work.args.spec.element_bytes, pair = 2 * element;
  const auto is_aligned = [&](const std::uint8_t* at) {
    return reinterpret_cast<std::uintptr_t>(at) % static_cast<unsigned>(pair) == 0;
  };
  if (work.shape.patches != 0) {
    const bool across = (work.job.turn & kSwapsSides) == 0;
    return across && work.args.spec.patches.width % 2 == 0 && work.shape.tile.left % 2 == 0 && is_aligned(first);
  }
  const bool beside = places.column == element || places.column == -element;
  return beside && is_aligned(places.column < 0 ? first - element : first) && places.row % pair == 0 &&
         places.channel % pair == 0;
}

MILLRACE_HD inline PixelStore pixel_store(const TileWork& work) {
  const Shape& shape = work.shape;
  const TensorSpec& spec = work.args.spec;
  const TensorPlaces& places = shape.places;
  const int element = spec.element_bytes;
  std::uint8_t* const first = work.args.tensors + work.job.output +
                              (places.origin + shape.tile.top * places.row + shape.tile.left * places.column);
  const bool bgr = spec.channels == ChannelOrder::kBgr;
  return {.tensor = bgr ? first + std::ptrdiff_t{2} * places.channel : first,
          .patches = shape.patches != 0 ? work.at<PatchTable>(shape.patches) : nullptr,
          .values = work.at<std::uint32_t>(shape.store) + (bgr ? 512 : 0),
          .column = places.column,
          .row = places.row,
          .channel = bgr ? -places.channel : places.channel,
          .value_step = bgr ? -256 : 256,
          .width = shape.tile.width,
          .element_bytes = element,
          .grey = spec.channels == ChannelOrder::kGrey,
          .converts = shape.converts_last,
          .in_pairs = stores_pairs(work, first)};
}

}  // namespace millrace::kernels::cuda
