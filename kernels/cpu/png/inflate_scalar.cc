// Inflating with the instructions that every processor has.
#include <bit>
#include <cstring>

#include "kernels/cpu/png/inflate_kernels.h"

#define MILLRACE_PNG_TARGET

namespace millrace::kernels::png {
namespace {

#include "kernels/cpu/png/inflate_loop.h"

}  // namespace

InflateStatus inflate_symbols_scalar(const InflateCodes& codes, InflateBits& bits, InflateInput& in,
                                     InflateOutput& out) {
  return inflate_symbols(codes, bits, in, out);
}

}  // namespace millrace::kernels::png
