// From packed coefficients (kernels/packed) to samples: unpacking, dequantisation and inverse DCT of blocks that lie
// side by side. The samples are those that inverse_dct.h and scaled_dct.h give for the same blocks.
//
// The groups are hostile: they are as PackedImage::read() lets them pass, whichever program made them. Whatever they
// say, nothing is read or written but what is named below; samples of what no Encoder packs may be anything.
// Thread-safe: plain functions over the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/cpu/jpeg/dct/inverse_dct.h"
#include "kernels/packed/unpack.h"

namespace millrace::kernels::jpeg {

// Blocks first .. first + count - 1 of a group, and where their samples go: count * side by side, from `out`.
struct PackedRun {
  packed::Group group;
  int first = 0, count = 0;
  int side = kBlock;  // samples of a block: 8, 4, 2 or 1
  const Dequantiser* dequantiser = nullptr;
  std::uint8_t* out = nullptr;
  std::ptrdiff_t stride = 0;
};

// Unpacking, order, dequantisation and inverse DCT in one loop. REQUIRES: side == kBlock.
using FusedDct = void (*)(const PackedRun& run);
#if defined(__x86_64__)
void fused_exact_avx2(const PackedRun& run);
void fused_fast_avx2(const PackedRun& run);
void fused_exact_avx512(const PackedRun& run);  // both REQUIRE Target::kAvx512 and packed::has_unpacking_vectors()
void fused_fast_avx512(const PackedRun& run);
#endif

// Immutable.
class PackedDct {
 public:
  enum class Loops : std::uint8_t { kFused, kApart };  // kApart: blocks are written out in between, for comparing

  // REQUIRES: the processor has `target`. Targets without a fused loop do without.
  explicit PackedDct(Target target, Loops loops = Loops::kFused);

  // False: a block is beyond what can be equal everywhere; no Encoder packs such.
  bool transform(const PackedRun& run, Precision precision) const;

 private:
  bool transform_apart(const PackedRun& run, Precision precision) const;

  const packed::Unpacker& unpacker_;
  const InverseDct& inverse_dct_;
  FusedDct exact_ = nullptr, fast_ = nullptr;
};

}  // namespace millrace::kernels::jpeg
