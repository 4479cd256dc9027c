#include "kernels/jpeg/unstuff.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace millrace::kernels::jpeg {
namespace {

// From a state in the middle, byte by byte between the 0xFF that memchr() finds.
Unstuffed finish(FileBytes scan, std::size_t at, std::uint8_t* out, std::size_t size) {
  while (at < scan.size()) {
    const void* const found = std::memchr(scan.data() + at, 0xFF, scan.size() - at);
    if (found == nullptr) {
      std::memcpy(out + size, scan.data() + at, scan.size() - at);
      return {size + scan.size() - at, -1, scan.size()};
    }
    const auto stop = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - scan.data());
    std::memcpy(out + size, scan.data() + at, stop - at);
    size += stop - at;
    if (stop + 1 == scan.size()) return {size, -1, stop};
    if (scan[stop + 1] != 0) return {size, scan[stop + 1], stop};
    out[size++] = 0xFF;
    at = stop + 2;
  }
  return {size, -1, scan.size()};
}

MarkerPlace find_from(FileBytes scan, std::size_t at) {
  while (at < scan.size()) {
    const void* const found = std::memchr(scan.data() + at, 0xFF, scan.size() - at);
    if (found == nullptr) return {scan.size()};
    at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - scan.data());
    if (at + 1 == scan.size()) return {at};
    if (scan[at + 1] != 0) return {at, scan[at + 1]};
    at += 2;
  }
  return {scan.size()};
}

#if defined(__x86_64__)

// Copies 32 bytes at a time, and goes on after the first 0xFF among them.
__attribute__((target("avx2,bmi"))) Unstuffed unstuff_avx2(FileBytes scan, std::uint8_t* out) {
  const __m256i marker = _mm256_set1_epi8(-1);
  std::size_t at = 0, size = 0;
  while (at + 33 <= scan.size()) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scan.data() + at));
    const auto found = static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, marker)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + size), bytes);
    if (found == 0) {
      at += 32;
      size += 32;
      continue;
    }
    const auto stop = static_cast<std::size_t>(__builtin_ctz(found));
    const int behind = scan[at + stop + 1];
    if (behind != 0) return {size + stop, behind, at + stop};
    at += stop + 2;
    size += stop + 1;
  }
  return finish(scan, at, out, size);
}

// 64 bytes at a time, without a branch for those to leave out: some 1 of 5 such lots has one. Files come from far away.
__attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt"))) Unstuffed unstuff_avx512(FileBytes scan,
                                                                                        std::uint8_t* out) {
  constexpr std::size_t kAhead = 2048;
  const __m512i marker = _mm512_set1_epi8(-1);
  std::size_t at = 0, size = 0;
  std::uint64_t before = 0;  // 1: the byte before is 0xFF
  for (; at + 64 <= scan.size(); at += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(scan.data() + std::min(at + kAhead, scan.size())), _MM_HINT_T0);
    const __m512i bytes = _mm512_loadu_si512(scan.data() + at);
    const std::uint64_t found = _mm512_cmpeq_epi8_mask(bytes, marker), behind = found << 1 | before;
    if (_mm512_mask_test_epi8_mask(behind, bytes, bytes) != 0) break;
    _mm512_storeu_si512(out + size, _mm512_maskz_compress_epi8(~behind, bytes));
    size += 64 - static_cast<std::size_t>(__builtin_popcountll(behind));
    before = found >> 63;
  }
  return finish(scan, at - before, out, size - before);
}

// Looks at 32 bytes and those after them at a time.
__attribute__((target("avx2,bmi"))) MarkerPlace find_marker_avx2(FileBytes scan) {
  const __m256i marker = _mm256_set1_epi8(-1);
  std::size_t at = 0;
  for (; at + 33 <= scan.size(); at += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scan.data() + at));
    const __m256i behind = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scan.data() + at + 1));
    const __m256i stuffed = _mm256_cmpeq_epi8(behind, _mm256_setzero_si256());
    const auto found =
        static_cast<unsigned>(_mm256_movemask_epi8(_mm256_andnot_si256(stuffed, _mm256_cmpeq_epi8(bytes, marker))));
    if (found == 0) continue;
    const std::size_t place = at + static_cast<std::size_t>(__builtin_ctz(found));
    return {place, scan[place + 1]};
  }
  return find_from(scan, at);
}

#endif

}  // namespace

Unstuffed unstuff(FileBytes scan_untrusted, std::uint8_t* out, Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return unstuff_avx512(scan_untrusted, out);
  if (target != Target::kScalar) return unstuff_avx2(scan_untrusted, out);
#endif
  static_cast<void>(target);
  return finish(scan_untrusted, 0, out, 0);
}

MarkerPlace find_marker(FileBytes scan_untrusted, Target target) {
#if defined(__x86_64__)
  if (target != Target::kScalar) return find_marker_avx2(scan_untrusted);
#endif
  static_cast<void>(target);
  return find_from(scan_untrusted, 0);
}

MarkerPlace reference::find_marker(FileBytes scan_untrusted) {
  for (std::size_t i = 0; i < scan_untrusted.size(); ++i) {
    if (scan_untrusted[i] != 0xFF) continue;
    if (i + 1 == scan_untrusted.size()) return {i};
    if (scan_untrusted[i + 1] != 0) return {i, scan_untrusted[i + 1]};
    ++i;
  }
  return {scan_untrusted.size()};
}

Unstuffed reference::unstuff(FileBytes scan_untrusted, std::uint8_t* out) {
  Unstuffed result;
  for (std::size_t i = 0; i < scan_untrusted.size(); ++i) {
    out[result.size] = scan_untrusted[i];
    if (scan_untrusted[i] == 0xFF) {
      result.consumed = i;
      if (i + 1 == scan_untrusted.size()) return result;
      if (scan_untrusted[++i] != 0) return {result.size, scan_untrusted[i], result.consumed};
    }
    ++result.size;
  }
  result.consumed = scan_untrusted.size();
  return result;
}

}  // namespace millrace::kernels::jpeg
