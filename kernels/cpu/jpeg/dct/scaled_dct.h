// The inverse DCT to 4 x 4, 2 x 2 or 1 sample a block, for pictures that `fast` shrinks by more than that: of the
// coefficients only the lowest count, transformed by the inverse DCT of that size (the orthonormal one, scaled so that
// levels are kept). In 32-bit integers, with islow's constants for 4 x 4. Thread-safe: plain functions.
#pragma once

#include "kernels/cpu/jpeg/dct/inverse_dct.h"

namespace millrace::kernels::jpeg {

// `side` x `side` samples to job.out, side 1, 2 or 4; the job's coefficients are zeroed. False: a coefficient that
// counts is beyond what undamaged images have.
bool transform_scaled(const BlockJob& job, int side);

}  // namespace millrace::kernels::jpeg
