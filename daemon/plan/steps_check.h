// Whether a recipe's steps of augmentation make sense. Thread-safe: pure functions.
#pragma once

#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// kInvalid, naming the step: "recipe.steps[2].one_of.steps[0].posterize: must be between 1 and 8, is 0".
Result<void> check_steps(const Recipe& recipe);

// kInvalid. REQUIRES: nothing of the rest of the recipe.
Result<void> check_erasing(const Recipe& recipe);

}  // namespace millrace
