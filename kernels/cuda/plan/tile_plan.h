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
Tile whole_tile(const ImageJob& job, std::uint32_t index);

// MCUs of a picture: whole rows and columns of them.
struct McuBox {
  Span rows, columns;
};

// Those whose blocks the tiles of this tensor look at.
McuBox needed_mcus(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights);

// Appends the tiles of job `index`. At least `wanted` of them where the tensor has rows for that, but for `nearest`: a
// batch of few images keeps more thread blocks busy with more, at the price of MCU rows that two tiles decode. Empty:
// done. Otherwise nothing is appended, and it says why the image cannot be done here. REQUIRES: the rows of needed_mcus() are
// among job.first_mcu_row to end_mcu_row; the crop lies inside the image, the tensor inside what it is resampled to.
std::string_view cut_tiles(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                           std::uint32_t index, int wanted, std::vector<Tile>& tiles);

}  // namespace millrace::kernels::cuda
