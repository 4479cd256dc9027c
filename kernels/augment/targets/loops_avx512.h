// The loops of both AVX-512 targets and their table, for a file that has included vectors_avx512.h and one of
// moves_avx512.h and moves_avx512bw.h. Included by kernels_avx512.cc and kernels_avx512bw.cc, in their anonymous
// namespaces.
#pragma once

#include "kernels/augment/targets/colour_avx512.h"

#include "kernels/augment/targets/blur_avx512.h"
#include "kernels/augment/targets/geometry_avx512.h"
#include "kernels/augment/targets/hue_avx512.h"

constexpr Kernels make_kernels() {
  Kernels kernels = kernels_with(map_bytes, hue_bytes);
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
