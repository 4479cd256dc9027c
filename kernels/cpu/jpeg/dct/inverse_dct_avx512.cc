// The inverse DCT of four blocks at a time, a block a 128-bit lane.
#include "kernels/cpu/jpeg/dct/inverse_dct.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/jpeg/dct/inverse_dct_avx512_lanes.h"

namespace millrace::kernels::jpeg {
namespace {

// Where coefficients come from: bytes of the zig-zag order's first or second half.
struct Half {
  alignas(64) std::uint8_t from[kCoefficients];
  std::uint64_t is_second = 0;
};
// Rows 0-3 and 4-7, or columns.
struct Order {
  Half rows[2], columns[2];
};
constexpr Order kFrom = [] {
  Order order{};
  const auto put = [](Half(&halves)[2], int to, int from) {
    Half& half = halves[to / 32];
    for (int byte = 0; byte < 2; ++byte) {
      half.from[2 * (to % 32) + byte] = static_cast<std::uint8_t>(2 * (from % 32) + byte);
      half.is_second |= std::uint64_t{from >= 32} << (2 * (to % 32) + byte);
    }
  };
  for (int i = 0; i < kCoefficients; ++i) {
    const int natural = kNatural[static_cast<std::size_t>(i)];
    put(order.rows, natural, i);
    put(order.columns, natural % kBlock * kBlock + natural / kBlock, i);
  }
  return order;
}();

// Coefficients in zig-zag order.
struct Block {
  Vec low, high;
};

MILLRACE_JPEG_VECTOR Block load(const std::int16_t* coefficients) {
  return {_mm512_load_si512(coefficients), _mm512_load_si512(coefficients + 32)};
}

MILLRACE_JPEG_VECTOR void zero(std::int16_t* coefficients) {
  _mm512_store_si512(coefficients, _mm512_setzero_si512());
  _mm512_store_si512(coefficients + 32, _mm512_setzero_si512());
}

MILLRACE_JPEG_VECTOR bool is_flat(const Block& block) {
  const Vec beside_dc = _mm512_maskz_mov_epi16(0xFFFFFFFE, block.low);
  const Vec any = _mm512_or_si512(beside_dc, block.high);
  return _mm512_test_epi32_mask(any, any) == 0;
}

// One half of a block. `large`: not 0 where some are beyond harmless.
MILLRACE_JPEG_VECTOR Vec coefficients_of(const Block& block, const Half& half, const std::int16_t* harmless,
                                         Vec& large) {
  const Vec from = _mm512_load_si512(half.from);
  const Vec values =
      _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(from, block.low), half.is_second, from, block.high);
  large = _mm512_or_si512(large, _mm512_subs_epu16(_mm512_abs_epi16(values), _mm512_load_si512(harmless)));
  return values;
}

// Rows 0-3 and 4-7, dequantised. False: too large.
MILLRACE_JPEG_VECTOR bool dequantise(const BlockJob& job, const Block& block, Vec& top, Vec& bottom) {
  const Dequantiser& dequantiser = *job.dequantiser;
  const std::int16_t *const harmless = dequantiser.harmless.data(), *const factors = dequantiser.factors.data();
  Vec large = _mm512_setzero_si512();
  top = _mm512_mullo_epi16(coefficients_of(block, kFrom.rows[0], harmless, large), _mm512_load_si512(factors));
  bottom =
      _mm512_mullo_epi16(coefficients_of(block, kFrom.rows[1], harmless + 32, large), _mm512_load_si512(factors + 32));
  return __builtin_expect(_mm512_test_epi32_mask(large, large) == 0, 1) || is_ordinary(job);
}

// Columns 0-3 and 4-7.
MILLRACE_JPEG_VECTOR bool dequantise_fast(const BlockJob& job, const Block& block, Vec& left, Vec& right) {
  const FastFactors& fast = job.dequantiser->fast;
  const std::int16_t *const harmless = fast.harmless.data(), *const steps = fast.steps.data();
  const std::int16_t* const scales = fast.scales.data();
  Vec large = _mm512_setzero_si512();
  left = _mm512_mullo_epi16(coefficients_of(block, kFrom.columns[0], harmless, large), _mm512_load_si512(steps));
  right =
      _mm512_mullo_epi16(coefficients_of(block, kFrom.columns[1], harmless + 32, large), _mm512_load_si512(steps + 32));
  left = _mm512_mulhrs_epi16(left, _mm512_load_si512(scales));
  right = _mm512_mulhrs_epi16(right, _mm512_load_si512(scales + 32));
  return __builtin_expect(_mm512_test_epi32_mask(large, large) == 0, 1) || is_ordinary(job);
}

template <Precision kPrecision>
MILLRACE_JPEG_VECTOR bool dequantise_as(const BlockJob& job, const Block& block, Vec& top, Vec& bottom) {
  return kPrecision == Precision::kFast ? dequantise_fast(job, block, top, bottom)
                                        : dequantise(job, block, top, bottom);
}

template <int kLane>
MILLRACE_JPEG_VECTOR void store_lane(const BlockJob& job, const Vec samples[4]) {
  for (int i = 0; i < 4; ++i) {
    const __m128i rows = _mm512_extracti32x4_epi32(samples[i], kLane);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(job.out + 2 * i * job.stride), rows);
    _mm_storeh_pd(reinterpret_cast<double*>(job.out + (2 * i + 1) * job.stride), _mm_castsi128_pd(rows));
  }
}

// Up to four blocks; lanes left over count for nothing.
template <Precision kPrecision>
struct Group {
  const BlockJob* job[kLanes];
  Vec top[kLanes], bottom[kLanes];
  int count = 0;

  MILLRACE_JPEG_VECTOR void finish() {
    if (count == 0) return;
    Vec rows[8], samples[4];
    to_rows(top, rows);
    to_rows(bottom, rows + 4);
    kPrecision == Precision::kFast ? transform_fast_lanes(rows, samples) : transform_lanes(rows, samples);
    store_lane<0>(*job[0], samples);
    if (count > 1) store_lane<1>(*job[1], samples);
    if (count > 2) store_lane<2>(*job[2], samples);
    if (count > 3) store_lane<3>(*job[3], samples);
    count = 0;
  }
};

template <Precision kPrecision>
MILLRACE_JPEG_TARGET bool transform(const BlockJob* jobs, int count) {
  Group<kPrecision> group;
  for (int i = 0; i < kLanes; ++i) group.top[i] = group.bottom[i] = _mm512_setzero_si512();
  for (int i = 0; i < count; ++i) {
    const BlockJob& job = jobs[i];
    const Block block = load(job.coefficients);
    if (is_flat(block)) {
      if (!fill_flat(job)) return false;
      continue;
    }
    if (!dequantise_as<kPrecision>(job, block, group.top[group.count], group.bottom[group.count])) return false;
    zero(job.coefficients);
    group.job[group.count] = &job;
    if (++group.count == kLanes) group.finish();
  }
  group.finish();
  return true;
}

}  // namespace

const InverseDct& avx512_inverse_dct() {
  static constexpr InverseDct kTransform{transform<Precision::kExact>, transform<Precision::kFast>};
  return kTransform;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
