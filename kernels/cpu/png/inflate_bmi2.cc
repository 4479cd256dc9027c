// Inflating with BMI2: shifts by any register that leave the flags alone.
#include <bit>
#include <cstring>

#include "kernels/cpu/png/inflate_kernels.h"

#if defined(__x86_64__)

#define MILLRACE_PNG_TARGET __attribute__((target("avx2,bmi,bmi2")))

namespace millrace::kernels::png {
namespace {

#include "kernels/cpu/png/inflate_loop.h"

}  // namespace

MILLRACE_PNG_TARGET InflateStatus inflate_symbols_bmi2(const InflateCodes& codes, InflateBits& bits, InflateInput& in,
                                                       InflateOutput& out) {
  return inflate_symbols(codes, bits, in, out);
}

}  // namespace millrace::kernels::png

#endif
