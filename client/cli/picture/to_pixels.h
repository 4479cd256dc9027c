// A tensor's image back to pixels, to look at: whatever the recipe did to the numbers is undone. Pure functions,
// thread-safe.
#pragma once

#include <cstddef>
#include <span>

#include "client/cli/picture/canvas.h"
#include "millrace/recipe.h"

namespace millrace::cli {

// The image of `size` that `bytes` hold in the recipe's type, layout and channels. REQUIRES: bytes has room for it.
Picture to_picture(const Recipe& recipe, Size size, std::span<const std::byte> bytes);

float from_float16(std::uint16_t bits);
float from_bfloat16(std::uint16_t bits);

}  // namespace millrace::cli
