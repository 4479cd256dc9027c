// The rectangles that a recipe's erasing takes out of one sample, each drawn as torchvision's RandomErasing.get_params()
// does: ten attempts, then none. Of several, how many is drawn first, and each is of its part of the share: timm's
// RandomErasing. A pure function, thread-safe.
#pragma once

#include <vector>

#include "daemon/model/random_key.h"
#include "proto/base/recipe.h"

namespace millrace {

// Inside an image of that size, and smaller than it along both sides; in the order in which they are erased.
std::vector<Box> draw_erased(const Erasing& erasing, Size size, RandomKey key);

}  // namespace millrace
