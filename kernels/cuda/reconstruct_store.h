// Finished pixels to tensor elements.
#pragma once

#include "kernels/cuda/reconstruct_rows.h"

namespace millrace::kernels::cuda {

MILLRACE_HD inline void load_store(const TileWork& work, Thread thread) {
  std::uint32_t* const values = work.at<std::uint32_t>(work.shape.store);
  for (int i = thread.index; i < 256 * channels_of(work.args.spec); i += kTileThreads) values[i] = work.args.store[i];
}

// One side of a tensor of patches: elements from its first sample to sample i.
struct PatchSide {
  int samples, merge;        // of a patch, patches of a group
  int group, patch, sample;  // steps

  MILLRACE_HD int at(int i) const {
    const int of = i / samples;
    return of / merge * group + of % merge * patch + i % samples * sample;
  }
};
MILLRACE_HD inline int elements_of_patch(const TensorSpec& spec) {
  return channels_of(spec) * spec.patches.temporal * spec.patches.height * spec.patches.width;
}
MILLRACE_HD inline PatchSide patches_across(const TensorSpec& spec) {
  const int patch = elements_of_patch(spec), merge = spec.patches.merge;
  return {spec.patches.width, merge, merge * merge * patch, patch, 1};
}
MILLRACE_HD inline PatchSide patches_down(const TensorSpec& spec) {
  const int patch = elements_of_patch(spec), merge = spec.patches.merge;
  return {spec.patches.height, merge, merge * patch * (spec.width / spec.patches.width), merge * patch,
          spec.patches.width};
}

// The places of samples first .. first + count - 1 of `all` along one side; one more, the last again, up to `room`.
struct PatchRange {
  int first, count, room, all;
  bool reversed;  // by mirroring or flipping

  MILLRACE_HD void load(const PatchSide& side, int element_bytes, int* places, Thread thread) const {
    for (int i = thread.index; i < room; i += kTileThreads) {
      const int sample = first + (i < count ? i : count - 1);
      places[i] = element_bytes * side.at(reversed ? all - 1 - sample : sample);
    }
  }
};

MILLRACE_HD inline void load_patches(const TileWork& work, Thread thread) {
  const TensorSpec& spec = work.args.spec;
  if (!has_patches(spec)) return;
  const Tile& tile = work.shape.tile;
  const bool swaps = (work.job.turn & kSwapsSides) != 0, flip = work.job.flip != 0;
  const StoredSides sides = stored_sides(spec, work.job);
  const PatchSide across = patches_across(spec), down = patches_down(spec);
  const int room = rounded_up(tile.width, 2), element = spec.element_bytes;
  auto* const table = work.at<PatchTable>(work.shape.patches);
  auto* const columns = reinterpret_cast<int*>(table + 1);
  if (thread.index == 0) *table = {spec.patches.temporal, element * spec.patches.height * spec.patches.width, room};
  const PatchRange of_columns{tile.left, tile.width, room, sides.columns,
                              work.shape.across.mirrored != (flip && !swaps)};
  const PatchRange of_rows{tile.top, tile.height, tile.height, sides.rows, work.shape.down.mirrored != (flip && swaps)};
  of_columns.load(swaps ? down : across, element, columns, thread);
  of_rows.load(swaps ? across : down, element, columns + room, thread);
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
    std::uint8_t* at = tensor + (y * row + x * column);
    int step = column, frames = 1, frame = 0;
    if (patches != nullptr) {
      const int* const columns = patches->column(x);
      at = tensor + (columns[0] + *patches->row(y));
      step = columns[1] - columns[0];
      frames = patches->frames;
      frame = patches->frame;
    }
    for (; frames > 0; --frames, at += frame) put(at, step, pair, x + 1 < width);
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
