// Entropy decoding with BMI2: shifts by any register that leave the flags alone.
#include <cstddef>
#include <cstring>

#include "kernels/cpu/jpeg/entropy.h"

#if defined(__x86_64__)

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2,bmi,bmi2")))

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

#include "kernels/cpu/jpeg/entropy_loop.h"

}  // namespace

const EntropyKernels& bmi2_entropy_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
