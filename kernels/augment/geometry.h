// Steps that move pixels, on planes whose rows follow one another without a gap. Internal to kernels/augment.
#pragma once

#include "kernels/augment/kernels.h"
#include "kernels/augment/operation.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels::augment {

// One plane, rows to columns: each `stride` bytes behind the one before, which may be negative.
void transpose(const Byte* in, std::ptrdiff_t stride, Size size, Byte* out, std::ptrdiff_t out_stride);
// Counter-clockwise, 1..3 of them, to planes of the turned size.
void turn(const Kernels& kernels, const Planes& in, Size size, int turns, const Planes& out);
// kAffine and kPerspective of `planes`, in place. `pixels` has room for those planes, and kSlack more. False when the
// limit was over.
bool transform(const Kernels& kernels, const Operation& operation, Size size, TimeLimit& limit, const Planes& planes,
               Byte* pixels);

}  // namespace millrace::kernels::augment
