// The rectangle that a recipe's erasing takes out of one sample, drawn as torchvision's RandomErasing.get_params() does:
// ten attempts, then none. A pure function, thread-safe.
#pragma once

#include <optional>

#include "daemon/model/random_key.h"
#include "proto/base/recipe.h"

namespace millrace {

// Inside an image of that size, and smaller than it along both sides. nullopt: nothing is erased.
std::optional<Box> draw_erased(const Erasing& erasing, Size size, RandomKey key);

}  // namespace millrace
