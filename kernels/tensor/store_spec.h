// What a picture's tensor is: element type, layout or patches, channel order, range. Values; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/tensor/element.h"

namespace millrace::kernels {

enum class Layout : std::uint8_t { kNchw, kNhwc };
enum class ChannelOrder : std::uint8_t { kRgb, kBgr, kGrey };
enum class ValueRange : std::uint8_t { kUnit, kRaw };
enum class Flip : std::uint8_t { kNone, kHorizontal };

// By channel in the order R, G, B whatever the tensor's order; grey uses the first entry.
struct Normalise {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
  friend bool operator==(const Normalise&, const Normalise&) = default;
};

// Patch by patch instead of row by row: patches in groups of merge x merge, groups row by row, patches row by row in
// their group; a patch is [channel, frame, row, column], all frames alike.
struct Patches {
  int width = 1;
  int height = 1;
  int merge = 1;
  int temporal = 1;
  friend bool operator==(const Patches&, const Patches&) = default;
};

// `range` counts where the output is floating and not normalised; uint8 elements are the pixels themselves. `patches`
// takes the place of `layout`.
struct StoreSpec {
  DType dtype = DType::kUint8;
  Layout layout = Layout::kNchw;
  ChannelOrder channels = ChannelOrder::kRgb;
  ValueRange range = ValueRange::kUnit;
  std::optional<Normalise> normalise;
  std::optional<Patches> patches = std::nullopt;
  friend bool operator==(const StoreSpec&, const StoreSpec&) = default;
};

constexpr int channel_count(ChannelOrder order) {
  return order == ChannelOrder::kGrey ? 1 : 3;
}

// Which of R, G, B the tensor's channel `c` holds.
constexpr int colour_of(ChannelOrder order, int c) {
  return order == ChannelOrder::kBgr ? 2 - c : c;
}

// Pillow's RGB to L: ITU-R 601-2 luma in 16-bit fixed point, rounded.
constexpr std::uint8_t luma(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  return static_cast<std::uint8_t>((red * 19595U + green * 38470U + blue * 7471U + 0x8000U) >> 16);
}

}  // namespace millrace::kernels
