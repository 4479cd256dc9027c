// L3 version 2 tile by tile, written to be obviously right: README.md's text, a sample at a time. Every other decoder and
// encoder is compared with these. Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/samples.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3::reference {

// As TileDecoder::decode().
TileFault decode_tile(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes);

// Appends the tile whose pixels are `pixels`: at most 32 x 32 of them.
void encode_tile(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out);

}  // namespace millrace::kernels::l3::reference
