// What timm's RandAugment and AugMix choose from (timm/data/auto_augment.py, "rand-..." and "augmix-..." with the
// settings of create_transform).
// Pure functions.
#pragma once

#include <optional>

#include "daemon/draw/random.h"
#include "kernels/augment/operation.h"
#include "proto/base/steps.h"

namespace millrace {

// One operation drawn from `random`: which, whether, how strong, with which sampling. nullopt: none was to be done, or
// it changes nothing.
std::optional<kernels::Operation> draw_timm_operation(const steps::TimmRandAugment& step, kernels::Size size,
                                                      RandomStream& random);

// Likewise of those that timm's AugMix chooses from, which it always does.
std::optional<kernels::Operation> draw_timm_operation(const steps::TimmAugMix& step, kernels::Size size,
                                                      RandomStream& random);

}  // namespace millrace
