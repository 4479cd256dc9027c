// From what a request says of a tensor to the job that makes it: the crop as the stored picture has it, sizes, filter.
// On the host. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/plan/picture_plan.h"
#include "kernels/cuda/plan/tile_plan.h"
#include "kernels/jpeg/header.h"
#include "kernels/tensor/orientation.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels::cuda {

inline constexpr int kMostTensorSide = 65535;

// One tensor of an image. Crop, resized size and window count in the picture once it is turned, and `flip` comes after
// that.
struct ViewRequest {
  Box crop;
  Flip flip = Flip::kNone;
  Size resized{};  // the crop is resampled to this size, of which `window` says which part the tensor is
  Box window{};    // both empty: the crop becomes the tensor
  Size size{};     // of the tensor, or of the picture on its canvas; empty: the recipe's
  std::optional<Filter> filter{};  // nullopt: the recipe's
  std::optional<Canvas> canvas{};  // the picture is padded, and the tensor is what this shows
  std::span<const Operation> operations{};
  std::span<const Erased> erased{};

  // Whether more is done to the picture than to store it.
  bool is_augmented() const { return canvas.has_value() || !operations.empty() || !erased.empty(); }
  Size output() const { return canvas ? Size{canvas->shown.width, canvas->shown.height} : size; }
};

// ImageJob::turn.
std::uint8_t turn_of(Orientation orientation);

// What the header says of sizes, MCUs and sampling.
void put_frame(const jpeg::Header& header, ImageJob& job);

// Whether pictures of that size can be made, and tensors of it stored so.
bool is_possible(Size size);
bool is_storable(const StoreSpec& store, Size size);

// An image with more is the CPU's: tables are computed before it is known whether a crop can be cut into tiles.
inline constexpr std::size_t kMostWeightsOfImage = std::size_t{1} << 18;

// What the view says, and tables of weights where the kernels compute none, `most_weights` of them together. Empty: done;
// else why not.
// REQUIRES: put_frame(); view.size and view.filter are said.
std::string_view put_view(const ViewRequest& view, Orientation orientation, std::size_t most_weights, ImageJob& job,
                          std::vector<std::int32_t>& weights);

// The smallest box around both.
McuBox around(const McuBox& a, const McuBox& b);
bool holds(const McuBox& box, const McuBox& other);

}  // namespace millrace::kernels::cuda
