// The loop over blocks with 512-bit vectors, four at a time, for a file that has defined, in the anonymous namespace
// where it includes this, beside what its lanes header has:
//   Half: where the 32 coefficients of one half of a block come from, with put(to, from)
//   ordered(low, high, half): these coefficients, of the two halves in zig-zag order
#pragma once

// Rows 0-3 and 4-7, or columns.
struct Order {
  Half rows[2], columns[2];
};
constexpr Order kFrom = [] {
  Order order{};
  for (int i = 0; i < kCoefficients; ++i) {
    const int natural = kNatural[static_cast<std::size_t>(i)];
    const int turned = natural % kBlock * kBlock + natural / kBlock;
    order.rows[natural / 32].put(natural % 32, i);
    order.columns[turned / 32].put(turned % 32, i);
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
  const Vec values = ordered(block.low, block.high, half);
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
