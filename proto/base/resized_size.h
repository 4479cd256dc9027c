// What a Resize step makes of a size. Sides are rounded as torchvision's Resize does (ShorterSide, LongerSide) and as
// the image processors of transformers do: SmartResize as Qwen2-VL's smart_resize(), TileGrid as GOT-OCR2's and
// InternVL's get_optimal_tiled_canvas(), BoundedSides as Idefics2's get_resize_output_image_size(). Those compute in
// double precision, and so does this, operation by operation, because a side is a different one if a quotient is off by
// a bit. Pure functions, thread-safe.
#pragma once

#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// kInvalid when `resize` does not take such a size: SmartResize, one side over 200 times the other.
Result<void> check_resizable(const Resize& resize, Size size);

// The size after `resize` of an image of `size`, each side at least 1. A side that does not fit into 32 bits comes out
// as the largest number, which is over every limit. Of a resize that daemon/plan/recipe_check refuses it is any size.
// REQUIRES: both sides of `size` at least 1; check_resizable(); it is not drawn for each sample (ScaleJitter, RandomShorterSide).
Size resized_size(const Resize& resize, Size size);

}  // namespace millrace
