// Unpacking with AVX-512 (VBMI2) and GFNI: some 45 instructions a block, and no branch but the one for wide values.
#include "kernels/packed/unpack.h"

#if defined(__x86_64__)

#include "kernels/packed/unpack_avx512_lanes.h"

namespace millrace::kernels::packed {
namespace {

MILLRACE_PACKED_TARGET void unpack(const Group& group, int first, int count, std::int16_t* out) {
  const layout::Parts parts = layout::parts_of(group);
  alignas(64) std::int16_t levels[kGroupBlocks];
  _mm512_store_si512(levels, levels_of(parts));
  Progress progress{0, group.end};
  for (int i = 0; i < first; ++i) skip_block(kShapes[parts.shapes[i]], progress);
  for (int i = first; i < first + count; ++i, out += jpeg::kCoefficients) {
    const Coefficients block = take_block(kShapes[parts.shapes[i]], parts.values, progress);
    _mm512_store_si512(out, _mm512_mask_set1_epi16(block.low, 1, levels[i]));
    _mm512_store_si512(out + 32, block.high);
  }
}

}  // namespace

const Unpacker& avx512_unpacker() {
  static constexpr Unpacker kUnpacker{unpack};
  return kUnpacker;
}

}  // namespace millrace::kernels::packed

#endif
