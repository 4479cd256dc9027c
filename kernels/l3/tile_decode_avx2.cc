// Coded tiles of 8 bits with AVX2, sixteen samples at a time; all others as the scalar decoder has them. Sixteen samples
// are a shuffle, which takes each sample's two bytes into a word, and two multiplications, which move its highest bit to
// the word's and down again with its sign. No pdep, which is slow on older processors.
#include "kernels/l3/tile_decode.h"

#if defined(__x86_64__)

#include <array>

#define MILLRACE_L3_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#include "kernels/l3/tile_rows.h"

namespace millrace::kernels::l3 {
namespace {

// Of a code, in the order of two rows of eight samples.
struct alignas(32) Lanes {
  std::array<std::uint8_t, 32> bytes;  // of the payload that a sample is in
  std::array<std::uint16_t, 16> up;    // factors
  std::array<std::uint16_t, 16> down;
};

constexpr std::array<Lanes, kCodes + 1> kLanes = [] {
  std::array<Lanes, kCodes + 1> all{};
  for (std::size_t code = 0; code < all.size(); ++code) {
    unsigned bit = 0;
    for (unsigned i = 0; i < kSamplesOfCode; ++i) {
      const unsigned width = kBook8.codes[code].widths[i / 4];
      const unsigned lane = i % 4 / 2 * 8 + i / 4 * 2 + i % 2, byte = bit / 8;
      all[code].bytes[2 * lane] = static_cast<std::uint8_t>(byte < 16 ? byte : 0x80);
      all[code].bytes[2 * lane + 1] = static_cast<std::uint8_t>(byte + 1 < 16 ? byte + 1 : 0x80);
      all[code].up[lane] = static_cast<std::uint16_t>(width == 0 ? 0 : 1U << (16 - bit % 8 - width));
      all[code].down[lane] = static_cast<std::uint16_t>(width == 0 ? 0 : 1U << width);
      bit += width;
    }
  }
  return all;
}();

MILLRACE_L3_TARGET __m128i load_16(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
MILLRACE_L3_TARGET __m256i load_32(const void* at) {
  return _mm256_load_si256(static_cast<const __m256i*>(at));
}

class Avx2Codes {
 public:
  explicit Avx2Codes(const TileParts& parts) : code_(parts.codes), payload_(parts.payload) {}

  MILLRACE_L3_TARGET void read_pair(Mode mode, __m256i rows[2]) {
    const __m256i a = read_code(), b = read_code(), c = read_code(), d = read_code();
    const __m256i left = _mm256_packs_epi16(a, b), right = _mm256_packs_epi16(c, d);
    rows[0] = _mm256_permute2x128_si256(left, right, 0x20);
    rows[1] = _mm256_permute2x128_si256(left, right, 0x31);
    if (mode == Mode::kSmooth) return;
    rows[0] = prefix_sums(rows[0]);
    rows[1] = prefix_sums(rows[1]);
  }

  MILLRACE_L3_TARGET static __m256i smooth(__m256i above) {
    const __m256i down = _mm256_permute2x128_si256(above, above, 0x08),
                  up = _mm256_permute2x128_si256(above, above, 0x81);
    const __m256i first = _mm256_setr_epi32(255, 0, 0, 0, 0, 0, 0, 0);
    const __m256i last = _mm256_setr_epi32(0, 0, 0, 0, 0, 0, 0, static_cast<int>(0xFF00'0000));
    return smooth_of(_mm256_blendv_epi8(_mm256_alignr_epi8(above, down, 15), above, first), above,
                     _mm256_blendv_epi8(_mm256_alignr_epi8(up, above, 1), above, last));
  }

 private:
  MILLRACE_L3_TARGET static __m256i prefix_sums(__m256i v) {
    v = _mm256_add_epi8(v, _mm256_slli_si256(v, 1));
    v = _mm256_add_epi8(v, _mm256_slli_si256(v, 2));
    v = _mm256_add_epi8(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi8(v, _mm256_slli_si256(v, 8));
    const __m256i lower = _mm256_permute2x128_si256(v, v, 0x08);  // zeros, and the lower half in the upper one
    return _mm256_add_epi8(v, _mm256_shuffle_epi8(lower, _mm256_set1_epi8(15)));
  }

  MILLRACE_L3_TARGET __m256i read_code() {
    const Lanes& lanes = kLanes[*code_];
    const __m128i payload = load_16(payload_);
    payload_ += kBook8.bytes[*code_++];
    const __m256i words = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(payload), load_32(&lanes.bytes));
    return _mm256_mulhi_epi16(_mm256_mullo_epi16(words, load_32(&lanes.up)), load_32(&lanes.down));
  }

  const std::uint8_t* code_;
  const std::uint8_t* payload_;
};

// Which byte of a plane's sixteen goes to each of 48, a third of them at a time.
constexpr std::array<std::array<std::array<std::uint8_t, 16>, 3>, 3> kThirds = [] {
  std::array<std::array<std::array<std::uint8_t, 16>, 3>, 3> all{};
  for (unsigned third = 0; third < 3; ++third) {
    for (unsigned channel = 0; channel < 3; ++channel) {
      for (unsigned i = 0; i < 16; ++i) {
        const unsigned at = 16 * third + i;
        all[third][channel][i] = static_cast<std::uint8_t>(at % 3 == channel ? at / 3 : 0x80);
      }
    }
  }
  return all;
}();

MILLRACE_L3_TARGET void interleave_16(const std::uint8_t* const planes[3], std::uint8_t* out) {
  const __m128i red = load_16(planes[0]), green = load_16(planes[1]), blue = load_16(planes[2]);
  for (std::size_t third = 0; third < 3; ++third) {
    const auto& from = kThirds[third];
    const __m128i mixed =
        _mm_or_si128(_mm_shuffle_epi8(red, load_16(from[0].data())), _mm_shuffle_epi8(green, load_16(from[1].data())));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * third),
                     _mm_or_si128(mixed, _mm_shuffle_epi8(blue, load_16(from[2].data()))));
  }
}

}  // namespace

TileFault decode_tile_avx2(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes) {
  TileParts parts;
  const TileFault fault = split_tile(shape, tile_untrusted, parts);
  if (fault != TileFault::kNone) return fault;
  if (parts.kind == TileKind::kCoded && shape.bytes == 1)
    decode_coded<Avx2Codes>(shape.channels, parts, planes);
  else
    decode_parts_scalar(shape, parts, planes);
  return TileFault::kNone;
}

MILLRACE_L3_TARGET void interleave_avx2(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
                                        int count, std::uint8_t* out) {
  int x = 0;
  for (; x + 16 <= count; x += 16) {
    const std::uint8_t* const planes[3] = {red + x, green + x, blue + x};
    interleave_16(planes, out + 3 * x);
  }
  interleave_scalar(red + x, green + x, blue + x, count - x, out + 3 * x);
}

}  // namespace millrace::kernels::l3

#endif
