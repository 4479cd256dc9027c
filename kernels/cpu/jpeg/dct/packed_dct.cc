#include "kernels/cpu/jpeg/dct/packed_dct.h"

#include "kernels/cpu/jpeg/dct/scaled_dct.h"

namespace millrace::kernels::jpeg {

PackedDct::PackedDct(Target target, Loops loops)
    : unpacker_(packed::unpacker(target)), inverse_dct_(inverse_dct(target)) {
#if defined(__x86_64__)
  if (loops == Loops::kApart) return;
  if (target == Target::kAvx512 && packed::has_unpacking_vectors()) {
    exact_ = fused_exact_avx512;
    fast_ = fused_fast_avx512;
  } else if (target != Target::kScalar) {
    exact_ = fused_exact_avx2;
    fast_ = fused_fast_avx2;
  }
#else
  static_cast<void>(loops);
#endif
}

bool PackedDct::transform(const PackedRun& run, Precision precision) const {
  const FusedDct fused = precision == Precision::kExact ? exact_ : fast_;
  if (fused == nullptr || run.side != kBlock) return transform_apart(run, precision);
  fused(run);
  return true;
}

bool PackedDct::transform_apart(const PackedRun& run, Precision precision) const {
  alignas(64) std::int16_t blocks[packed::kGroupBlocks * kCoefficients];
  BlockJob jobs[packed::kGroupBlocks];
  unpacker_.unpack(run.group, run.first, run.count, blocks);
  for (int i = 0; i < run.count; ++i)
    jobs[i] = {blocks + i * kCoefficients, run.dequantiser, run.out + i * run.side, run.stride};
  if (run.side == kBlock) {
    return precision == Precision::kExact ? inverse_dct_.transform(jobs, run.count)
                                          : inverse_dct_.transform_fast(jobs, run.count);
  }
  for (int i = 0; i < run.count; ++i) {
    if (!transform_scaled(jobs[i], run.side)) return false;
  }
  return true;
}

}  // namespace millrace::kernels::jpeg
