// The last step: rows of 8-bit pixels become tensor elements, in place, by a table of finished outputs
// (kernels/tensor/store_table.h).
//
//   const StoreTable table({.dtype = DType::kFloat16, .normalise = imagenet});                  // once a recipe
//   ImageStore store(table, tensor_bytes_of_this_image, {224, 224}, 3, Flip::kNone, workspace);  // once an image
//   resample(plan, view, workspace, store);                                                     // it is a row sink
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/image_view.h"
#include "kernels/tensor/store_table.h"

namespace millrace::kernels {

class Workspace;
struct StoreKernels;

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
  // The rows have kPlaneSlack (plane_kernels.h) bytes of room after them.
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

}  // namespace millrace::kernels
