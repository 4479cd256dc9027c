// The inner loop of inflating, a file an instruction set. Internal to kernels/cpu/png.
#pragma once

#include "kernels/cpu/png/inflate.h"

namespace millrace::kernels::png {

InflateStatus inflate_symbols_scalar(const InflateCodes& codes, InflateBits& bits, InflateInput& in,
                                     InflateOutput& out);
#if defined(__x86_64__)
InflateStatus inflate_symbols_bmi2(const InflateCodes& codes, InflateBits& bits, InflateInput& in, InflateOutput& out);
#endif

}  // namespace millrace::kernels::png
