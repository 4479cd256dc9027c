// Blurs, on planes whose rows follow one another without a gap. Internal to kernels/augment.
#pragma once

#include "kernels/augment/kernels.h"
#include "kernels/augment/operation.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels::augment {

// ImageFilter.GaussianBlur of `planes`, in place; `others` are as large. False when the limit was over.
bool pillow_blur(const Kernels& kernels, float radius, Size size, TimeLimit& limit, const Planes& planes,
                 const Planes& others);
// kGaussianBlur. False when the limit was over.
bool gaussian_blur(const Kernels& kernels, const Operation& operation, const Planes& in, Size size, TimeLimit& limit,
                   const Planes& out);

}  // namespace millrace::kernels::augment
