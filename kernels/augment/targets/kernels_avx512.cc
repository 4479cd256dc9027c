// The loops with AVX-512. A table of 256 is four registers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/kernels.h"
#include "kernels/augment/targets/hue_below.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

// clang knows no width there.
#if defined(__clang__)
#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni")))
#else
#define MILLRACE_AUGMENT_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,prefer-vector-width=512")))
#endif

#define MILLRACE_AUGMENT_VECTOR 64

namespace millrace::kernels::augment {
namespace {

#include "kernels/augment/targets/geometry_loop.h"
#include "kernels/augment/targets/kernels_loop.h"

#include "kernels/augment/targets/vectors_avx512.h"

#include "kernels/augment/targets/moves_avx512.h"

#include "kernels/augment/targets/loops_avx512.h"

constexpr Kernels with_rows(Kernels kernels) {
  kernels.split = split_pixels;
  kernels.merge = merge_pixels;
  return kernels;
}

constexpr Kernels kKernels = with_rows(make_kernels());

}  // namespace

const Kernels& avx512_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
