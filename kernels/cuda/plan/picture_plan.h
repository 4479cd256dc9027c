// What the augmentation's kernel is told: a picture's canvas, operations and erased boxes as a job, with all that one
// thread alone would have to compute: summed coordinates, weights of blurs, fixed-point matrices, and which step works
// in which buffer.
//
//   PicturePlan plan;
//   for (const PictureRequest& request : requests)
//     if (const std::string_view reason = append_picture(request, store, plan); !reason.empty()) ...   // the CPU's
//
// Operations are those of kernels/augment. What its is_valid() refuses is refused here. So is what the kernel cannot do
// to the bit: see append_picture().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/augment/operation.h"
#include "kernels/base/image_view.h"
#include "kernels/cuda/augment/augment_args.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels::cuda {

// What the output shows, in coordinates that are flipped already.
struct Canvas {
  PadMode mode = PadMode::kConstant;
  std::array<std::uint8_t, 3> fill{};
  Size resized;  // of the whole resized picture
  Box inner;     // of the resized picture: what the inner picture is
  Box shown;     // of the resized picture, may reach beyond it: what the output shows
};

struct Erased {
  Box box;                       // of the output
  std::array<float, 3> value{};  // by channel in the order R, G, B, or the only one
};

// Spans are looked at during append_picture() only.
struct PictureRequest {
  std::uint32_t image = 0;    // in AugmentArgs::status
  std::uint64_t picture = 0;  // bytes from AugmentArgs::pictures: 3 * inner.width * inner.height of them
  std::uint64_t output = 0;   // bytes from AugmentArgs::tensors: a multiple of an element's
  Size inner, size;           // of the picture and of the tensor; equal where there is no canvas
  std::optional<Canvas> canvas;
  std::span<const Operation> operations;
  std::span<const Erased> erased;
};

// Of one batch, whose tensors have one StoreSpec. Value.
struct PicturePlan {
  std::vector<PictureJob> jobs;
  std::vector<AugmentStep> steps;
  std::vector<ErasedBox> boxes;
  std::vector<std::uint32_t> tables;
  std::uint64_t scratch_bytes = 0;  // of all jobs: just as much

  void clear();
};

// Empty: appended; else why not, and the plan is as it was. Values of `erased` become elements of store.dtype: those
// that no uint8 has are refused. Refused are also operations that change the picture's size, sides above kLongestSide or
// more than kLargestArea in all, more than 2^28 pixels times operations, tensors from 2 GiB on, erased patches, and canvases that show more of the resized picture than `inner` has.
// Throws std::bad_alloc.
std::string_view append_picture(const PictureRequest& request, const StoreSpec& store, PicturePlan& plan);

}  // namespace millrace::kernels::cuda
