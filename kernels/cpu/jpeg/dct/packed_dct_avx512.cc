// From packed coefficients to samples with AVX-512 and GFNI, four blocks at a time: they stay in registers from the
// packed bytes to rows of 32 samples.
#include "kernels/cpu/jpeg/dct/packed_dct.h"

#if defined(__x86_64__)

#include "kernels/packed/unpack_avx512_lanes.h"
//
#include "kernels/cpu/jpeg/dct/inverse_dct_avx512_lanes.h"

#define MILLRACE_FUSED_TARGET                                                                                 \
  __attribute__((                                                                                             \
      target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vbmi,avx512vbmi2," \
             "avx512vnni,gfni")))
#define MILLRACE_FUSED_INLINE MILLRACE_FUSED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

// Bits of a bitmap for the first ten coefficients in zig-zag order, which are in a corner of 4 x 4.
constexpr std::uint64_t kCornerEnd = std::uint64_t{1} << 10;

// Where a block's coefficients come from, its upper or its lower half: of bytes in zig-zag order, into the upper bytes
// of words; of words in two vectors.
struct Order {
  alignas(64) std::uint8_t from_bytes[2][64];
  alignas(64) std::uint8_t from_words[2][64];
  std::uint64_t is_second[2];
};

// Row by row, or for `fast` column by column.
constexpr Order make_order(Precision precision) {
  Order order{};
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    const std::size_t natural = kNatural[i];
    const std::size_t to = precision == Precision::kExact ? natural : natural % kBlock * kBlock + natural / kBlock;
    const std::size_t half = to / 32, at = 2 * (to % 32);
    for (std::size_t byte = 0; byte < 2; ++byte) {
      order.from_bytes[half][at + byte] = static_cast<std::uint8_t>(i);
      order.from_words[half][at + byte] = static_cast<std::uint8_t>(2 * (i % 32) + byte);
      order.is_second[half] |= std::uint64_t{i >= 32} << (at + byte);
    }
  }
  return order;
}
template <Precision kPrecision>
constexpr Order kOrder = make_order(kPrecision);

template <Precision kPrecision, int kHalf>
MILLRACE_FUSED_INLINE Vec ordered(Vec bytes) {
  const Vec from = _mm512_load_si512(kOrder<kPrecision>.from_bytes[kHalf]);
  return _mm512_srai_epi16(_mm512_permutexvar_epi8(from, bytes), 8);
}
template <Precision kPrecision, int kHalf>
MILLRACE_FUSED_INLINE Vec ordered(const packed::Coefficients& block) {
  const Vec from = _mm512_load_si512(kOrder<kPrecision>.from_words[kHalf]);
  return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(from, block.low), kOrder<kPrecision>.is_second[kHalf],
                                      from, block.high);
}

// What coefficients are multiplied by: the upper half of a block, and the lower one.
struct Factors {
  Vec steps[2], scales[2];
};
template <Precision kPrecision>
MILLRACE_FUSED_INLINE Factors factors_of(const Dequantiser& dequantiser) {
  const bool fast = kPrecision == Precision::kFast;
  const std::int16_t* const steps = fast ? dequantiser.fast.steps.data() : dequantiser.factors.data();
  const std::int16_t* const scales = fast ? dequantiser.fast.scales.data() : dequantiser.factors.data();
  return {{_mm512_load_si512(steps), _mm512_load_si512(steps + 32)},
          {_mm512_load_si512(scales), _mm512_load_si512(scales + 32)}};
}

template <Precision kPrecision>
MILLRACE_FUSED_INLINE Vec dequantised(Vec coefficients, const Factors& factors, int half) {
  const Vec product = _mm512_mullo_epi16(coefficients, factors.steps[half]);
  return kPrecision == Precision::kFast ? _mm512_mulhrs_epi16(product, factors.scales[half]) : product;
}

// The next block, dequantised. Its bitmap.
template <Precision kPrecision>
MILLRACE_FUSED_INLINE std::uint64_t take(const packed::Shape& shape, const std::uint8_t* values, std::int16_t level,
                                         const Factors& factors, packed::Progress& progress, Vec& top, Vec& bottom) {
  const std::uint64_t bitmap = packed::take_bitmap(shape, progress);
  const Vec bytes = packed::values_of(shape, values, progress.bit);
  const Vec placed = _mm512_maskz_expand_epi8(bitmap, packed::with_zero(bytes));
  Vec upper, lower;
  if (__builtin_expect((shape.nibbles | shape.raw) != 0, 0)) {
    const packed::Coefficients narrow{_mm512_cvtepi8_epi16(_mm512_castsi512_si256(placed)),
                                      _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(placed, 1))};
    const packed::Coefficients block = packed::take_wide(shape, values, bitmap, bytes, narrow, progress);
    upper = ordered<kPrecision, 0>(block);
    lower = ordered<kPrecision, 1>(block);
  } else {
    progress.bit += packed::bits_of(shape, packed::count_of(bitmap));
    upper = ordered<kPrecision, 0>(placed);
    lower = ordered<kPrecision, 1>(placed);
  }
  top = dequantised<kPrecision>(_mm512_mask_set1_epi16(upper, 1, level), factors, 0);
  bottom = dequantised<kPrecision>(lower, factors, 1);
  return bitmap;
}

// Rows of up to four blocks, of which `mask` has a bit each.
MILLRACE_FUSED_INLINE void store_rows(const Vec samples[4], __mmask8 mask, std::uint8_t* out, std::ptrdiff_t stride) {
  const Vec even_then_odd = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
  for (int i = 0; i < 4; ++i, out += 2 * stride) {
    const Vec rows = _mm512_permutexvar_epi64(even_then_odd, samples[i]);
    _mm256_mask_storeu_epi64(out, mask, _mm512_castsi512_si256(rows));
    _mm256_mask_storeu_epi64(out + stride, mask, _mm512_extracti64x4_epi64(rows, 1));
  }
}

template <Precision kPrecision>
MILLRACE_FUSED_INLINE void transform_fused(const PackedRun& run) {
  const packed::layout::Parts parts = packed::layout::parts_of(run.group);
  alignas(64) std::int16_t levels[packed::kGroupBlocks];
  _mm512_store_si512(levels, packed::levels_of(parts));
  packed::Progress progress{0, run.group.end};
  for (int i = 0; i < run.first; ++i) packed::skip_block(packed::kShapes[parts.shapes[i]], progress);
  const Factors factors = factors_of<kPrecision>(*run.dequantiser);
  Vec top[kLanes], bottom[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) top[lane] = bottom[lane] = _mm512_setzero_si512();
  std::uint8_t* out = run.out;
  const int end = run.first + run.count;
  for (int i = run.first; i < end; i += kLanes, out += kLanes * kBlock) {
    const int lanes = end - i < kLanes ? end - i : kLanes;
    std::uint64_t bitmaps = 0;
    for (int lane = 0; lane < lanes; ++lane)
      bitmaps |= take<kPrecision>(packed::kShapes[parts.shapes[i + lane]], parts.values, levels[i + lane], factors,
                                  progress, top[lane], bottom[lane]);
    Vec rows[8], samples[4];
    to_rows(top, rows);
    if (kPrecision == Precision::kExact && bitmaps < kCornerEnd) {
      transform_corner_lanes(rows, samples);
    } else {
      to_rows(bottom, rows + 4);
      kPrecision == Precision::kFast ? transform_fast_lanes(rows, samples) : transform_lanes(rows, samples);
    }
    store_rows(samples, static_cast<__mmask8>((1U << lanes) - 1), out, run.stride);
  }
}

}  // namespace

MILLRACE_FUSED_TARGET void fused_exact_avx512(const PackedRun& run) {
  transform_fused<Precision::kExact>(run);
}
MILLRACE_FUSED_TARGET void fused_fast_avx512(const PackedRun& run) {
  transform_fused<Precision::kFast>(run);
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
