// Steps that map each value by itself, as tables. Internal to kernels/augment.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/augment/operation.h"

namespace millrace::kernels::augment {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::uint32_t, 256>;

Table identity_table();
// Of kInvert, kPosterize, kSolarize and kSolarizeAdd.
Table value_table(const Operation& operation);
// Image.blend of a picture that is `degenerate` all over with the picture.
Table blend_table(int degenerate, float factor);
// From the least and the largest value of a picture.
Table autocontrast_table(int low, int high);
Table equalize_table(const Histogram& histogram);

}  // namespace millrace::kernels::augment
