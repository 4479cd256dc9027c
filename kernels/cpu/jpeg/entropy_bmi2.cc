// Entropy decoding with BMI2: shifts by any register that leave the flags alone.
#include <cstring>

#include "kernels/cpu/jpeg/entropy.h"

#if defined(__x86_64__)

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2,bmi,bmi2")))

namespace millrace::kernels::jpeg {
namespace {

#include "kernels/cpu/jpeg/entropy_loop.h"

}  // namespace

const EntropyKernels& bmi2_entropy_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
