// The last step: rows of 8-bit pixels become tensor elements, in place. A pixel has 256 values, so a table of finished
// outputs a channel makes the arithmetic exact at the price of a look-up: out = ((x / 255) - mean) / std, each step
// rounded to float32 (as torchvision's ToTensor and Normalize), then rounded once to the element type.
//
//   const StoreTable table({.dtype = DType::kFloat16, .normalise = imagenet});                  // once a recipe
//   ImageStore store(table, tensor_bytes_of_this_image, {224, 224}, 3, Flip::kNone, workspace);  // once an image
//   resample(plan, view, workspace, store);                                                     // it is a row sink
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/base/image_view.h"
#include "kernels/tensor/element.h"

namespace millrace::kernels {

class Workspace;
struct StoreKernels;

enum class Layout : std::uint8_t { kNchw, kNhwc };
enum class ChannelOrder : std::uint8_t { kRgb, kBgr, kGrey };
enum class ValueRange : std::uint8_t { kUnit, kRaw };
enum class Flip : std::uint8_t { kNone, kHorizontal };

// By channel in the order R, G, B whatever the tensor's order; grey uses the first entry.
struct Normalise {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
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
};

constexpr int channel_count(ChannelOrder order) {
  return order == ChannelOrder::kGrey ? 1 : 3;
}

// Pillow's RGB to L: ITU-R 601-2 luma in 16-bit fixed point, rounded.
constexpr std::uint8_t luma(std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
  return static_cast<std::uint8_t>((red * 19595U + green * 38470U + blue * 7471U + 0x8000U) >> 16);
}

// The finished outputs of one tensor channel, as bits: whole, and split into bytes (planes[b][x] is byte b of value x)
// for byte shuffles.
struct alignas(64) StorePlane {
  std::uint32_t values[256];
  std::uint8_t planes[4][256];
};

// All tables of one recipe, about 6 KiB. Immutable.
class StoreTable {
 public:
  explicit StoreTable(const StoreSpec& spec);

  const StoreSpec& spec() const { return spec_; }
  int channels() const { return channel_count(spec_.channels); }
  std::size_t element_bytes() const { return bytes_of(spec_.dtype); }
  std::size_t image_bytes(Size size) const {
    const int frames = spec_.patches ? spec_.patches->temporal : 1;
    return static_cast<std::size_t>(size.width) * size.height * channels() * element_bytes() * frames;
  }
  // Tensor channel `c`, in tensor order.
  const StorePlane& plane(int c) const { return planes_[c]; }
  bool planes_are_equal() const { return planes_are_equal_; }

 private:
  StoreSpec spec_;
  std::array<StorePlane, 3> planes_{};
  bool planes_are_equal_ = true;
};

// Stores the rows of one image. Thread-bound(the workspace's).
class ImageStore {
 public:
  // REQUIRES: `tensor` has table.image_bytes(size) bytes and is aligned to the element; source_channels is 1 (grey) or
  // 3 (RGB); the table's patches, if any, make whole groups of `size`; table and workspace outlive this.
  ImageStore(const StoreTable& table, std::span<std::byte> tensor, Size size, int source_channels, Flip flip,
             Workspace& workspace);

  // REQUIRES: 0 <= y < size.height; `row` has size.width * source_channels bytes. Rows may come in any order.
  void operator()(int y, const std::uint8_t* row);

  // The same from a row of each channel (three of RGB, or one of grey), flipped already: `flip` counts for nothing.
  // The rows have kPlaneSlack (plane_kernels.h) bytes of room behind them.
  void store_planes(int y, const std::uint8_t* const* rows);

 private:
  void store_colour_planes(int y, const std::uint8_t* row);
  void store_grey_planes(int y, const std::uint8_t* row);
  void store_pixels(int y, const std::uint8_t* row);
  void store_patches(int y, const std::uint8_t* row);
  void store_split(int y, const std::uint8_t* const planes[3]);
  void scatter_split(int y, const std::uint8_t* const planes[3], std::byte* scratch);
  void scatter(int y, int channel, const std::byte* row);
  void widen(const StorePlane& plane, const std::uint8_t* in, int count, std::byte* out) const;
  const std::uint8_t* in_tensor_channels(const std::uint8_t* row);
  const std::uint8_t* as_grey(const std::uint8_t* row, std::uint8_t* scratch);

  const StoreTable& table_;
  std::byte* tensor_;
  Size size_;
  int source_channels_;
  Flip flip_;
  Workspace& workspace_;
  const StoreKernels& kernels_;
};

namespace reference {  // obviously right, slow: every element computed by itself
void store(const StoreSpec& spec, const U8View& picture, Flip flip, std::span<std::byte> tensor);
}

}  // namespace millrace::kernels
