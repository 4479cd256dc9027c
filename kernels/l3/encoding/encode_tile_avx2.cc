// The loops of encode_tile_loop.h with vectors of 32 bytes.
#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/l3/encoding/code_chooser.h"
#include "kernels/l3/encoding/encode_tile.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/tile.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,lzcnt")
#endif
#include "kernels/l3/encoding/encode_pair_avx2.h"
#include "kernels/l3/encoding/encode_tile_loop.h"

namespace millrace::kernels::l3 {

void encode_tile_avx2(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out) {
  encode_tile_here(pixels, effort, out);
}

}  // namespace millrace::kernels::l3

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
