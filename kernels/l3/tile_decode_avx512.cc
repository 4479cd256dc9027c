// Coded tiles of 8 bits with AVX-512 VBMI, a row pair of 64 samples at a time; all others as the scalar decoder has them.
// A code's payload is two halves of two groups each, and because the widths' sum is even, a half never lies in more than
// eight bytes. So a shuffle takes each half into a word of eight bytes, of which one instruction cuts all eight samples.
#include "kernels/l3/tile_decode.h"

#if defined(__x86_64__)

#include <array>

#define MILLRACE_L3_TARGET \
  __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#include "kernels/l3/tile_rows.h"

namespace millrace::kernels::l3 {
namespace {

// Of a code, in the order: upper row of columns 0 to 3, lower row of them, upper and lower row of columns 4 to 7.
struct alignas(64) Cuts {
  std::array<std::uint8_t, 16> bytes;  // of the payload: eight of each half
  std::array<std::uint8_t, 16> bits;   // where a sample begins in its half
  std::array<std::uint8_t, 16> masks;
  std::array<std::uint8_t, 16> signs;  // a sample's highest bit
};

constexpr std::array<Cuts, kCodes + 1> kCuts = [] {
  std::array<Cuts, kCodes + 1> all{};
  for (std::size_t code = 0; code < all.size(); ++code) {
    const std::uint8_t* const widths = kBook8.codes[code].widths;
    const unsigned begins[2] = {0, (widths[0] + widths[1]) / 2U};      // bytes
    const unsigned before[2] = {0, (widths[0] + widths[1]) % 2U * 4};  // bits in the half that are not its own
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned half = i / 8, row = i % 8 / 4, column = i % 4, group = 2 * half + column / 2;
      const unsigned width = widths[group];
      all[code].bytes[i] = static_cast<std::uint8_t>(begins[half] + i % 8);
      all[code].bits[i] = static_cast<std::uint8_t>(before[half] + (column / 2 == 0 ? 0 : 4U * widths[2 * half]) +
                                                    (2 * row + column % 2) * width) &
                          63U;
      all[code].masks[i] = static_cast<std::uint8_t>((1U << width) - 1);
      all[code].signs[i] = static_cast<std::uint8_t>(width == 0 ? 0 : 1U << (width - 1));
    }
  }
  return all;
}();

MILLRACE_L3_TARGET __m128i load_16(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

MILLRACE_L3_TARGET __m256i load_row(const std::uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// The columns beside each, the outermost beside themselves.
constexpr std::array<std::uint8_t, 32> neighbours(int step) {
  std::array<std::uint8_t, 32> columns{};
  for (int x = 0; x < kTileSide; ++x)
    columns[static_cast<std::size_t>(x)] = static_cast<std::uint8_t>(std::clamp(x + step, 0, kTileSide - 1));
  return columns;
}

class VbmiCodes {
 public:
  explicit VbmiCodes(const TileParts& parts) : code_(parts.codes), payload_(parts.payload) {}

  MILLRACE_L3_TARGET void read_pair(Mode mode, __m256i rows[2]) {
    const Cuts &a = kCuts[code_[0]], &b = kCuts[code_[1]], &c = kCuts[code_[2]], &d = kCuts[code_[3]];
    const std::uint8_t* const p1 = payload_ + kBook8.bytes[code_[0]];
    const std::uint8_t* const p2 = p1 + kBook8.bytes[code_[1]];
    const std::uint8_t* const p3 = p2 + kBook8.bytes[code_[2]];
    __m512i samples = _mm512_shuffle_epi8(four(payload_, p1, p2, p3),
                                          four(a.bytes.data(), b.bytes.data(), c.bytes.data(), d.bytes.data()));
    samples = _mm512_multishift_epi64_epi8(four(a.bits.data(), b.bits.data(), c.bits.data(), d.bits.data()), samples);
    samples = _mm512_and_si512(samples, four(a.masks.data(), b.masks.data(), c.masks.data(), d.masks.data()));
    const __m512i signs = four(a.signs.data(), b.signs.data(), c.signs.data(), d.signs.data());
    samples = _mm512_sub_epi8(_mm512_xor_si512(samples, signs), signs);
    const __m512i by_rows = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    samples = _mm512_permutexvar_epi32(by_rows, samples);
    if (mode != Mode::kSmooth) samples = prefix_sums(samples);
    rows[0] = _mm512_castsi512_si256(samples);
    rows[1] = _mm512_extracti64x4_epi64(samples, 1);
    payload_ = p3 + kBook8.bytes[code_[3]];
    code_ += kCodesOfPair;
  }

  MILLRACE_L3_TARGET static __m256i smooth(__m256i above) {
    alignas(32) static constexpr std::array<std::uint8_t, 32> kLeft = neighbours(-1), kRight = neighbours(1);
    const __m256i left = _mm256_load_si256(reinterpret_cast<const __m256i*>(kLeft.data()));
    const __m256i right = _mm256_load_si256(reinterpret_cast<const __m256i*>(kRight.data()));
    return smooth_of(_mm256_permutexvar_epi8(left, above), above, _mm256_permutexvar_epi8(right, above));
  }

 private:
  // Of two rows of 32 bytes.
  MILLRACE_L3_TARGET static __m512i prefix_sums(__m512i v) {
    v = _mm512_add_epi8(v, _mm512_slli_epi64(v, 8));
    v = _mm512_add_epi8(v, _mm512_slli_epi64(v, 16));
    v = _mm512_add_epi8(v, _mm512_slli_epi64(v, 32));
    // The first eight bytes' sum to the second eight of sixteen, then the first sixteen's to the second sixteen.
    v = _mm512_add_epi8(v, _mm512_maskz_shuffle_epi8(0xFF00'FF00'FF00'FF00, v, _mm512_set1_epi8(7)));
    const __m512i fifteenth = _mm512_maskz_shuffle_epi8(0x0000'FFFF'0000'FFFF, v, _mm512_set1_epi8(15));
    return _mm512_add_epi8(v, _mm512_maskz_shuffle_i64x2(0xCC, fifteenth, fifteenth, 0xA0));
  }

  MILLRACE_L3_TARGET static __m512i four(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
                                         const std::uint8_t* d) {
    __m512i all = _mm512_castsi128_si512(load_16(a));  // broadcasts take no turn at the shuffling port
    all = _mm512_mask_broadcast_i32x4(all, 0x00F0, load_16(b));
    all = _mm512_mask_broadcast_i32x4(all, 0x0F00, load_16(c));
    return _mm512_mask_broadcast_i32x4(all, 0xF000, load_16(d));
  }

  const std::uint8_t* code_;
  const std::uint8_t* payload_;
};

// Which of 128 bytes, 64 of red and green and 32 of blue behind them, goes to each of 96.
constexpr std::array<std::uint8_t, 128> kMixed = [] {
  std::array<std::uint8_t, 128> from{};
  for (std::size_t i = 0; i < 96; ++i) from[i] = static_cast<std::uint8_t>(i % 3 * kTileSide + i / 3);
  return from;
}();

}  // namespace

MILLRACE_L3_TARGET void interleave_avx512(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                                          int count, std::uint8_t* out) {
  if (count != kTileSide) return interleave_avx2(red, green, blue, count, out);
  const auto* const from = reinterpret_cast<const __m512i*>(kMixed.data());
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(load_row(red)), load_row(green), 1);
  const __m512i rest = _mm512_castsi256_si512(load_row(blue));
  _mm512_storeu_si512(out, _mm512_permutex2var_epi8(both, _mm512_loadu_si512(from), rest));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64),
                      _mm512_castsi512_si256(_mm512_permutex2var_epi8(both, _mm512_loadu_si512(from + 1), rest)));
}

TileFault decode_tile_avx512(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes) {
  TileParts parts;
  const TileFault fault = split_tile(shape, tile_untrusted, parts);
  if (fault != TileFault::kNone) return fault;
  if (parts.kind == TileKind::kCoded && shape.bytes == 1)
    decode_coded<VbmiCodes>(shape.channels, parts, planes);
  else
    decode_parts_scalar(shape, parts, planes);
  return TileFault::kNone;
}

}  // namespace millrace::kernels::l3

#endif
