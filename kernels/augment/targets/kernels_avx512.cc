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

#include "kernels/augment/targets/colour_avx512.h"

#include "kernels/augment/targets/blur_avx512.h"
#include "kernels/augment/targets/geometry_avx512.h"
#include "kernels/augment/targets/hue_avx512.h"

constexpr Kernels make_kernels() {
  Kernels kernels = kernels_with(map_bytes, hue_bytes);
  kernels.split = split_pixels;
  kernels.merge = merge_pixels;
  kernels.grey = grey_bytes;
  kernels.grey_sum = sum_of_grey;
  kernels.prepare = prepare_tables;
  kernels.saturate = saturate_bytes;
  kernels.blend = blend_bytes;
  kernels.copy_fixed = copy_fixed_gathered;
  kernels.sample = sample_gathered;
  kernels.box = box_halves;
  return kernels;
}

constexpr Kernels kKernels = make_kernels();

}  // namespace

const Kernels& avx512_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
