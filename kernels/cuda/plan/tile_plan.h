// Cuts tensors into tiles for the reconstruction, each of which fits a thread block's shared memory, and says what
// cannot be cut so. On the host, before launch. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cuda/reconstruct/reconstruct_args.h"
#include "kernels/cuda/reconstruct/tile.h"

namespace millrace::kernels::cuda {

// All of the image's tensor.
Tile whole_tile(const TensorSpec& spec, const ImageJob& job, std::uint32_t index);

// The MCU rows whose block entries the tiles of this image look at: ImageJob::first_mcu_row and end_mcu_row.
Span needed_mcu_rows(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights);

// Appends the tiles of image `index`. At least `wanted` of them where the tensor has rows for that, but for `nearest`: a batch of few
// images keeps more thread blocks busy with more, at the price of MCU rows that two tiles decode. Empty: done.
// Otherwise nothing is appended, and it says why the image cannot be done here. REQUIRES: job.first_mcu_row and
// end_mcu_row are needed_mcu_rows(); the crop lies inside the image, the tensor inside what it is resampled to.
std::string_view cut_tiles(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                           std::uint32_t index, int wanted, std::vector<Tile>& tiles);

}  // namespace millrace::kernels::cuda
