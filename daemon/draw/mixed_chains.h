// What AugMix does to a sample (Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and
// Uncertainty", arXiv:1912.02781): chains of operations, each of the image itself, and what they and the image weigh in
// the sum. As torchvision's AugMix and timm's AugMixAugment have it, on PIL images. Pure functions.
#pragma once

#include <vector>

#include "daemon/draw/random.h"
#include "kernels/augment/operation.h"
#include "proto/base/steps.h"

namespace millrace {

// Appends one sum, of kMixStart to kMixEnd. REQUIRES: daemon/plan's check_steps() was content.
void draw_mixed_chains(const steps::AugMix& step, kernels::Size size, RandomStream& random,
                       std::vector<kernels::Operation>& operations);
void draw_mixed_chains(const steps::TimmAugMix& step, kernels::Size size, RandomStream& random,
                       std::vector<kernels::Operation>& operations);

}  // namespace millrace
