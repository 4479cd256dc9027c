// The operations of torchvision's RandAugment, TrivialAugmentWide, AutoAugment and AugMix by their names
// (torchvision/transforms/autoaugment.py, _apply_op, for PIL images). Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/augment/operation.h"

namespace millrace::kernels {

// `magnitude` has its sign. Nothing for a name that is none of them, and for "Identity", which is no operation.
// `size` is the picture's when its turn comes: rotation is about its centre. What comes back may not be valid, as where
// "Posterize" has no bits left: see is_valid().
std::optional<Operation> named_operation(std::string_view name, double magnitude, Size size, Sampling sampling,
                                         const std::array<std::uint8_t, 3>& fill);

}  // namespace millrace::kernels
