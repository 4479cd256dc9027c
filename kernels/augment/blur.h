// Blurs, on planes whose rows follow one another without a gap. Internal to kernels/augment; the planner of kernels/cuda
// has the weights from here.
#pragma once

#include <optional>

#include "kernels/augment/kernels.h"
#include "kernels/augment/operation.h"
#include "kernels/base/time_limit.h"

namespace millrace::kernels::augment {

// What each of the three passes along a side is; nullopt: the blur changes nothing.
std::optional<BoxPass> pillow_pass(float radius);
// As torchvision has it. REQUIRES: `side` as kGaussianBlur has it.
HalfKernel half_kernel(int side, float deviation);

// ImageFilter.GaussianBlur of `planes`, in place; `others` are as large. False when the limit was over.
bool pillow_blur(const Kernels& kernels, float radius, Size size, TimeLimit& limit, const Planes& planes,
                 const Planes& others);
// kGaussianBlur. False when the limit was over.
bool gaussian_blur(const Kernels& kernels, const Operation& operation, const Planes& in, Size size, TimeLimit& limit,
                   const Planes& out);

}  // namespace millrace::kernels::augment
