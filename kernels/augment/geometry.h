// Steps that move pixels, on planes whose rows follow one another without a gap. Internal to kernels/augment; the
// planner of kernels/cuda has from here how a kAffine is done.
#pragma once

#include "kernels/augment/kernels.h"
#include "kernels/augment/operation.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels::augment {

// One plane, rows to columns: each `stride` bytes behind the one before, which may be negative. False when the limit was
// over, as for all that follow.
bool transpose(const Byte* in, std::ptrdiff_t stride, Size size, TimeLimit& limit, Byte* out,
               std::ptrdiff_t out_stride);
// Counter-clockwise, 1..3 of them, to planes of the turned size.
bool turn(const Kernels& kernels, const Planes& in, Size size, int turns, TimeLimit& limit, const Planes& out);
// Whether a kAffine moves the picture by whole pixels, so that each sampling gives pixels themselves: see shift().
bool moves_whole_pixels(const Operation& operation);
// Such a kAffine.
bool shift(const Operation& operation, const Planes& in, Size size, TimeLimit& limit, const Planes& out);
// Coordinates of a kAffine that samples the nearest pixel have 16 bits behind the point, and wrap.
std::uint32_t to_fixed(double value);
// Whether they do: at the picture's corners 16 bits before the point are enough. Else they are sums of doubles.
bool fits_fixed(const Operation& operation, Size size);
// kAffine and kPerspective of RGB rows, behind which there are kSlack bytes.
bool transform(const Kernels& kernels, const Operation& operation, Size size, TimeLimit& limit, const Byte* pixels,
               const Planes& out);

}  // namespace millrace::kernels::augment
