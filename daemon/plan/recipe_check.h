// Judges whether a recipe makes sense, and says how much memory it needs; nothing else in daemon or library does. Takes
// any recipe, also one that no client could have built. Pure functions, thread-safe.
#pragma once

#include <cstdint>

#include "proto/base/bytes.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// kInvalid naming the field (as the proto spells it, "recipe.resize.exact.width: ...") for values out of range, sizes
// over `max_side`, normalised uint8, a centre crop larger than the resize that the recipe fixes, a one-size tensor
// whose size the recipe does not fix, or patches that do not divide the sizes that the recipe makes.
Result<void> check_recipe(const Recipe& recipe, std::uint32_t max_side);

// What a slot has of `samples` images before their records. REQUIRES: fixed_tensor_bytes(recipe, samples).
Bytes one_size_tensor_bytes(const Recipe& recipe, std::uint32_t samples);

}  // namespace millrace
