// What the reconstruction is given beside batch.h. Plain values, laid out alike on host and device.
#pragma once

#include <cstdint>

#include "kernels/cuda/batch.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels::cuda {

// kFast: colours are converted at the tensor's size, and weights of filters without negative ones have 8 bits.
enum class Fidelity : std::uint8_t { kExact, kFast };

// See kernels::Patches. A width of 0: none.
struct PatchSpec {
  std::uint16_t width = 0, height = 0, merge = 0, temporal = 0;
};

// What all tensors of a batch have in common.
struct TensorSpec {
  PassOrder order;
  Layout layout;
  ChannelOrder channels;
  std::uint8_t element_bytes;  // 1, 2 or 4
  Fidelity fidelity;
  PatchSpec patches{};
};

// A part of an image's tensor, before turning and flipping: columns and rows as the stored picture has them. What one
// thread block makes.
struct Tile {
  std::uint32_t image;  // in the batch's jobs
  std::uint16_t left, top, width, height;
};

// `tensors` is aligned to elements, and ImageJob::output counts from it. `store`: 256 finished elements, in the lower
// bytes, for each of the tensor's channels, in its order (StorePlane::values). `quants`: 64 factors each, natural
// order. `weights`: see Side; ImageJob::column_weights counts its entries.
struct ReconstructArgs {
  TensorSpec spec;
  const Tile* tiles;
  const ImageJob* images;
  const BlockEntry* blocks;
  const Token* tokens;
  const std::uint16_t* quants;
  const std::int32_t* weights;
  const std::uint32_t* store;
  std::uint8_t* tensors;
  Status* status;  // a job each (ImageJob::decoded): those of others than kDone are left alone
};

}  // namespace millrace::kernels::cuda
