// Recipe messages become checked model values. Here: well-formed, finite, in range; whether the steps make sense
// together is plan/recipe_check's. Pure functions, thread-safe.
#pragma once

#include "daemon/model/recipe.h"
#include "millrace/v1/recipe.pb.h"
#include "proto/base/result.h"

namespace millrace {

// Errors: kInvalid, naming the field from the recipe on: "crop.centre.width: must be at least 1, is 0".
Result<Recipe> parse_recipe(const v1::Recipe& recipe_untrusted);
Result<Size> parse_size(const v1::Size& size_untrusted);
Result<Box> parse_box(const v1::Box& box_untrusted);

// Errors: kInvalid naming the field.
Result<OnError> parse_on_error(int value_untrusted);
Result<Fidelity> parse_fidelity(int value_untrusted);
Result<Priority> parse_priority(int value_untrusted);

}  // namespace millrace
