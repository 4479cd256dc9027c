// What the loops of both AVX-512 targets say in vectors of bytes and of 16-bit halves. Included by kernels_avx512.cc
// and kernels_avx512bw.cc, in their anonymous namespaces.
#pragma once

// Byte after byte of a register or of two: unpacking to halves takes the same bytes of each 128 bits as packing
// returns.
struct Halves {
  __m512i low, high;
};

MILLRACE_AUGMENT_INLINE __m512i bytes_of(const Byte* at) {
  return _mm512_loadu_si512(at);
}

MILLRACE_AUGMENT_INLINE __m512i all_bytes(int value) {
  return _mm512_set1_epi8(static_cast<char>(value));
}

MILLRACE_AUGMENT_INLINE __m512i all_halves(int value) {
  return _mm512_set1_epi16(static_cast<short>(value));
}

MILLRACE_AUGMENT_INLINE Halves interleave(__m512i even, __m512i odd) {
  return {_mm512_unpacklo_epi8(even, odd), _mm512_unpackhi_epi8(even, odd)};
}

MILLRACE_AUGMENT_INLINE Halves widened(__m512i bytes) {
  return interleave(bytes, _mm512_setzero_si512());
}

MILLRACE_AUGMENT_INLINE __m512i packed(Halves halves) {
  return _mm512_packus_epi16(halves.low, halves.high);
}

// The lowest `count` bits.
MILLRACE_AUGMENT_INLINE __mmask64 lowest(std::size_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}
