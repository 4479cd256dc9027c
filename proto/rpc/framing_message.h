// What of an image a recipe shows, as messages and back: crop, resize, padding. As recipe_message.h, whose part it is.
#pragma once

#include <string_view>

#include "millrace/v1/recipe.pb.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// from_message(): kInvalid, naming the field from the message on.
v1::Crop to_message(const Crop& crop);
Result<Crop> from_message(const v1::Crop& crop_untrusted);

// Without its filters.
v1::Resize to_message(const Resize& resize);
Result<Resize> from_message(const v1::Resize& resize_untrusted);

v1::Pad to_message(const Pad& pad);
Result<Pad> from_message(const v1::Pad& pad_untrusted);

v1::CropPlace to_message(CropPlace place);
Result<CropPlace> from_message(std::string_view field, v1::CropPlace place_untrusted);

}  // namespace millrace
