// What a Resize step makes of a size, rounded as torchvision's Resize does. Pure functions, thread-safe.
#pragma once

#include "daemon/model/recipe.h"

namespace millrace {

// The size after `resize` of an image of `size`, each side at least 1. A side that does not fit into 32 bits comes out
// as the largest number, which is over every limit. REQUIRES: both sides of `size` at least 1.
Size resized_size(const Resize& resize, Size size);

}  // namespace millrace
