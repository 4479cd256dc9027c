// Where the floats of Pillow's conversion to HSV are a little less than the integer H that they stand for.
#pragma once

namespace millrace::kernels::augment {

// Of a hue that has no remainder.
constexpr bool falls_below(int h) {
  const int numerator = 2 * h;  // of the hue in 85ths of a sixth
  const int base = numerator < 85 || numerator > 425 ? 0 : numerator < 255 ? 2 : 4;
  const int difference = numerator > 425 ? numerator - 510 : numerator - 85 * base;
  const float minuend = static_cast<float>(difference < 0 ? 85 + difference : 85) / 85.0F;
  const float subtrahend = static_cast<float>(difference < 0 ? 85 : 85 - difference) / 85.0F;
  const float sixths =
      static_cast<float>(static_cast<double>(base) + static_cast<double>(minuend) - static_cast<double>(subtrahend));
  const double turned = static_cast<double>(sixths) / 6.0 + 1.0;
  const float turn = static_cast<float>(turned >= 1.0 ? turned - 1.0 : turned);
  return static_cast<int>(static_cast<double>(turn) * 255.0) < h;
}

}  // namespace millrace::kernels::augment
