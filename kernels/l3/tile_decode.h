// The tile decoders of decoder.h's table, a source an instruction set, and what they have in common. Internal to
// kernels/l3.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/l3/decoder.h"

namespace millrace::kernels::l3 {

TileFault decode_tile_scalar(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes);
#if defined(__x86_64__)
TileFault decode_tile_avx2(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes);
TileFault decode_tile_avx512(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes);
#endif

// A tile without fault, of any kind.
void decode_parts_scalar(const TileShape& shape, const TileParts& parts, std::uint8_t* planes);

// Three planes to interleaved pixels, `count` of them: at most 32.
void interleave_scalar(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue, int count,
                       std::uint8_t* out);
#if defined(__x86_64__)
void interleave_avx2(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue, int count,
                     std::uint8_t* out);
void interleave_avx512(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue, int count,
                       std::uint8_t* out);
#endif

}  // namespace millrace::kernels::l3
