// The inverse DCT of two blocks at a time, a block a 128-bit lane.
#include "kernels/cpu/jpeg/dct/inverse_dct.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/jpeg/dct/inverse_dct_avx2_lanes.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kPairs = 4;    // two rows a vector
constexpr int kEighths = 8;  // of a block in zig-zag order, 8 coefficients each

// For each pair of rows and each eighth: which byte of the eighth goes where; -128 leaves a zero.
struct Order {
  alignas(32) std::int8_t from[kPairs][kEighths][32];
  bool any[kPairs][kEighths];
};

// Row by row, or column by column.
constexpr Order make_order(Precision precision) {
  Order order{};
  for (auto& of_pair : order.from) {
    for (auto& of_eighth : of_pair) {
      for (std::int8_t& byte : of_eighth) byte = -128;
    }
  }
  for (int i = 0; i < kCoefficients; ++i) {
    const int natural = kNatural[static_cast<std::size_t>(i)];
    const int at = precision == Precision::kExact ? natural : natural % kBlock * kBlock + natural / kBlock;
    order.any[at / 16][i / 8] = true;
    for (int byte = 0; byte < 2; ++byte)
      order.from[at / 16][i / 8][2 * (at % 16) + byte] = static_cast<std::int8_t>(2 * (i % 8) + byte);
  }
  return order;
}
template <Precision kPrecision>
constexpr Order kOrder = make_order(kPrecision);

MILLRACE_JPEG_VECTOR const __m256i* vectors(const std::int16_t* values) {
  return reinterpret_cast<const __m256i*>(values);
}

MILLRACE_JPEG_VECTOR bool is_flat(const std::int16_t* coefficients) {
  const __m256i* const in = vectors(coefficients);
  const Vec not_dc = _mm256_set_epi32(-1, -1, -1, -1, -1, -1, -1, -65536);
  const Vec any =
      _mm256_or_si256(_mm256_or_si256(_mm256_and_si256(in[0], not_dc), in[1]), _mm256_or_si256(in[2], in[3]));
  return _mm256_testz_si256(any, any) != 0;
}

MILLRACE_JPEG_VECTOR void zero(std::int16_t* coefficients) {
  for (int i = 0; i < 4; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(coefficients) + i, _mm256_setzero_si256());
}

template <Precision kPrecision, int kPair, int kEighth>
MILLRACE_JPEG_VECTOR Vec add_eighth(Vec rows, const std::int16_t* coefficients) {
  if constexpr (!kOrder<kPrecision>.any[kPair][kEighth]) return rows;
  const Vec eighth =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(coefficients + 8 * kEighth)));
  const Vec order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOrder<kPrecision>.from[kPair][kEighth]));
  return _mm256_or_si256(rows, _mm256_shuffle_epi8(eighth, order));
}

// Two rows or columns, dequantised; `large` gathers what is beyond harmless.
template <Precision kPrecision, int kPair>
MILLRACE_JPEG_VECTOR Vec dequantise_pair(const BlockJob& job, Vec& large) {
  Vec rows = _mm256_setzero_si256();
  rows = add_eighth<kPrecision, kPair, 0>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 1>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 2>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 3>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 4>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 5>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 6>(rows, job.coefficients);
  rows = add_eighth<kPrecision, kPair, 7>(rows, job.coefficients);
  const bool fast = kPrecision == Precision::kFast;
  const FastFactors& factors = job.dequantiser->fast;
  const Vec harmless = vectors(fast ? factors.harmless.data() : job.dequantiser->harmless.data())[kPair];
  large = _mm256_or_si256(large, _mm256_subs_epu16(_mm256_abs_epi16(rows), harmless));
  rows = _mm256_mullo_epi16(rows, vectors(fast ? factors.steps.data() : job.dequantiser->factors.data())[kPair]);
  return fast ? _mm256_mulhrs_epi16(rows, vectors(factors.scales.data())[kPair]) : rows;
}

// False: too large.
template <Precision kPrecision>
MILLRACE_JPEG_VECTOR bool dequantise(const BlockJob& job, Vec pairs[kPairs]) {
  Vec large = _mm256_setzero_si256();
  pairs[0] = dequantise_pair<kPrecision, 0>(job, large);
  pairs[1] = dequantise_pair<kPrecision, 1>(job, large);
  pairs[2] = dequantise_pair<kPrecision, 2>(job, large);
  pairs[3] = dequantise_pair<kPrecision, 3>(job, large);
  return _mm256_testz_si256(large, large) != 0 || is_ordinary(job);
}

template <int kLane>
MILLRACE_JPEG_VECTOR void store_lane(const BlockJob& job, const Vec samples[4]) {
  for (int i = 0; i < 4; ++i) {
    const __m128i rows = _mm256_extracti128_si256(samples[i], kLane);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(job.out + 2 * i * job.stride), rows);
    _mm_storeh_pd(reinterpret_cast<double*>(job.out + (2 * i + 1) * job.stride), _mm_castsi128_pd(rows));
  }
}

template <Precision kPrecision>
MILLRACE_JPEG_TARGET void transform_two(const Vec first[kPairs], const Vec second[kPairs], const BlockJob& a,
                                        const BlockJob* b) {
  Vec rows[8], samples[4];
  for (int i = 0; i < kPairs; ++i) {
    rows[2 * i] = _mm256_permute2x128_si256(first[i], second[i], 0x20);
    rows[2 * i + 1] = _mm256_permute2x128_si256(first[i], second[i], 0x31);
  }
  kPrecision == Precision::kFast ? transform_fast_lanes(rows, samples) : transform_lanes(rows, samples);
  store_lane<0>(a, samples);
  if (b != nullptr) store_lane<1>(*b, samples);
}

template <Precision kPrecision>
MILLRACE_JPEG_TARGET bool transform(const BlockJob* jobs, int count) {
  const BlockJob* waiting = nullptr;
  Vec first[kPairs], second[kPairs];
  for (int i = 0; i < count; ++i) {
    const BlockJob& job = jobs[i];
    if (is_flat(job.coefficients)) {
      if (!fill_flat(job)) return false;
      continue;
    }
    if (!dequantise<kPrecision>(job, waiting ? second : first)) return false;
    zero(job.coefficients);
    if (waiting != nullptr) transform_two<kPrecision>(first, second, *waiting, &job);
    waiting = waiting != nullptr ? nullptr : &job;
  }
  if (waiting != nullptr) transform_two<kPrecision>(first, first, *waiting, nullptr);
  return true;
}

}  // namespace

const InverseDct& avx2_inverse_dct() {
  static constexpr InverseDct kTransform{transform<Precision::kExact>, transform<Precision::kFast>};
  return kTransform;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
