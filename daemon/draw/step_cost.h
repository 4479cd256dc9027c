// What a recipe's augmentation costs a lane in time and memory, as far as the recipe tells before anything is drawn: for
// ordering work, sharing lanes and what memory is charged, and for nothing else. Pure functions, thread-safe.
#pragma once

#include <cstdint>

#include "proto/base/recipe.h"

namespace millrace {

// Picoseconds of some processor for each pixel of the output, on average over what may be drawn.
std::uint64_t step_pixel_ps(const Recipe& recipe);

// Pictures as large as the output that its steps keep at a time, at most, beside the one that they work on: those that
// are added up.
std::uint32_t kept_pictures(const Recipe& recipe);

}  // namespace millrace
