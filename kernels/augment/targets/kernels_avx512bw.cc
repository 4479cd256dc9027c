// The loops with AVX-512 without VBMI and VNNI. A table of 256 is four registers of pairs.
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
#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl")))
#else
#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")))
#endif

#define MILLRACE_AUGMENT_VECTOR 64

namespace millrace::kernels::augment {
namespace {

#include "kernels/augment/targets/geometry_loop.h"
#include "kernels/augment/targets/kernels_loop.h"

#include "kernels/augment/targets/vectors_avx512.h"

#include "kernels/augment/targets/moves_avx512bw.h"

#include "kernels/augment/targets/loops_avx512.h"

}  // namespace

// Rows to planes and back are AVX2's: they wait for memory.
const Kernels& avx512bw_kernels() {
  static const Kernels kernels = [] {
    Kernels all = make_kernels();
    all.split = avx2_kernels().split;
    all.merge = avx2_kernels().merge;
    return all;
  }();
  return kernels;
}

}  // namespace millrace::kernels::augment

#endif
