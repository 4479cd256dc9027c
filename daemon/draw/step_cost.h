// What a recipe's augmentation costs a lane, as far as the recipe tells before anything is drawn: for ordering work and
// sharing lanes, and for nothing else. Pure functions, thread-safe.
#pragma once

#include <cstdint>

#include "proto/base/recipe.h"

namespace millrace {

// Picoseconds of some processor for each pixel of the output, on average over what may be drawn.
std::uint64_t step_pixel_ps(const Recipe& recipe);

}  // namespace millrace
