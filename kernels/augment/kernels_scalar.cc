// The reference, for any processor.
#include "kernels/augment/kernels.h"

#define MILLRACE_AUGMENT_TARGET

namespace millrace::kernels::augment {
namespace {

void map(const Byte* table, Byte* plane, std::size_t padded) {
  for (std::size_t i = 0; i < padded; ++i) plane[i] = table[plane[i]];
}

#include "kernels/augment/kernels_loop.h"

}  // namespace

const Kernels& scalar_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment
