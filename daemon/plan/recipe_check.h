// Whether a recipe makes sense, and what it needs. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/recipe.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

// kInvalid naming the field (as the proto spells it, "recipe.resize.exact.width: ...") for values out of range, sizes
// over `max_side`, normalised uint8, a centre crop larger than the resize that the recipe fixes, a one-size tensor
// whose size the recipe does not fix, or patches that do not divide the sizes that the recipe makes.
Result<void> check_recipe(const Recipe& recipe, std::uint32_t max_side);

// The one size of every image that the recipe makes, where the recipe alone decides it (exact resize, centre crop, a
// crop of fixed size resized or not). A sample that brings its own box may come out otherwise; that is then the
// sample's error.
std::optional<Size> fixed_output_size(const Recipe& recipe);

// The tensor's bytes for `samples` images. REQUIRES: fixed_output_size(recipe).
Bytes one_size_tensor_bytes(const Recipe& recipe, std::uint32_t samples);

}  // namespace millrace
