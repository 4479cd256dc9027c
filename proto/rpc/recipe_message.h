// Recipes as messages and back; both directions of each field side by side. Here is asked only whether a message can be
// represented: every field and value known, a mean for each channel or one for all. Whether a recipe makes sense is
// daemon/plan/recipe_check's to say. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "millrace/v1/recipe.pb.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// from_message(): kInvalid, naming the field from the message on: "crop.centre.9: a field of Size that ...".
v1::Recipe to_message(const Recipe& recipe);
Result<Recipe> from_message(const v1::Recipe& recipe_untrusted);

// Of protobuf's text format of a millrace.v1.View: so many views as its count says, without what is shared by all of a
// recipe's. kInvalid: what is wrong, and where.
Result<std::vector<Recipe>> views_from_text(const std::string& text_untrusted);

v1::Size to_message(Size size);
Result<Size> from_message(const v1::Size& size_untrusted);

v1::Box to_message(const Box& box);
Result<Box> from_message(const v1::Box& box_untrusted);

// from_message(): kInvalid, "field: 77 is not a value that ...". UNSPECIFIED is what the proto says it means.
v1::DType to_message(DType dtype);
Result<DType> from_message(std::string_view field, v1::DType dtype_untrusted);

}  // namespace millrace
