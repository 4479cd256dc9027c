// Entropy decoding with BMI2: shifts by any register that leave the flags alone.
#include <cstddef>
#include <cstring>

#include "kernels/cpu/jpeg/entropy.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))

namespace millrace::kernels::jpeg {
namespace {

// The other table follows where `head` has the flag. Compilers would make a branch of it.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) void switch_if(std::uint32_t head, Cursor& cursor) {
  asm("test %[flag], %[head]\n\tcmovnz %c[table_at](%[then]), %[table]\n\tcmovnz %c[next_at](%[then]), %[then]"
      : [table] "+r"(cursor.table), [then] "+r"(cursor.then)
      : [head] "r"(head), [flag] "i"(HuffmanTable::kSwitch), [table_at] "i"(offsetof(TableSwitch, table)),
        [next_at] "i"(offsetof(TableSwitch, next))
      : "cc", "memory");
}

// 17: there is no such code.
MILLRACE_JPEG_TARGET inline __attribute__((always_inline)) int code_length(const CanonicalCode& code,
                                                                           std::uint32_t top) {
  const __m256i beyond = _mm256_set1_epi32(static_cast<int>(top + 1));
  const auto* const limits = reinterpret_cast<const __m256i*>(code.limit.data());
  const __m256i low = _mm256_cmpgt_epi32(beyond, _mm256_loadu_si256(limits));
  const __m256i high = _mm256_cmpgt_epi32(beyond, _mm256_loadu_si256(limits + 1));
  const int both = _mm256_movemask_epi8(_mm256_packs_epi32(low, high));
  return 1 + __builtin_popcount(static_cast<unsigned>(both)) / 2;
}

#include "kernels/cpu/jpeg/entropy_loop.h"

}  // namespace

const EntropyKernels& bmi2_entropy_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
