// Which groups of a packed image the kernels unpack, and how blocks are packed. Host only. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/unpack/unpack_args.h"
#include "kernels/jpeg/mcu_window.h"
#include "kernels/packed/packed_image.h"

namespace millrace::kernels::cuda {

// All kPackedShapes of kernels/packed.
std::vector<PackedShape> packed_shapes();

// Whether every group is of a size that an encoder makes. REQUIRES: an image that was read.
bool has_usual_groups(const packed::PackedImage& image);

// Appends the groups that have blocks in `window`. `at`: where the image, which begins at `begin`, does so in the batch's
// encoded bytes; `index`: of its job. Entries and tokens count from the first block of `window`'s MCU rows. Returns how
// many tokens they have room for, a multiple of 4.
// REQUIRES: has_usual_groups(); `window` lies in the image's grid; an image of less than 512 MiB.
std::uint32_t append_groups(const packed::PackedImage& image, const std::uint8_t* begin, const jpeg::McuWindow& window,
                            std::uint64_t at, std::uint32_t index, std::vector<PackedGroup>& groups);

}  // namespace millrace::kernels::cuda
