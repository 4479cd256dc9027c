// The random perspective of torchvision (RandomPerspective.get_params, functional.py's _get_perspective_coeffs), in
// double precision. Pure functions.
#pragma once

#include <array>
#include <optional>

#include "daemon/draw/random.h"
#include "kernels/base/image_view.h"

namespace millrace {

struct Point {
  double x = 0, y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};
using Corners = std::array<Point, 4>;  // top left, top right, bottom right, bottom left

// Where the image's corners come to be, whole pixels.
Corners draw_corners(float distortion, kernels::Size size, RandomStream& random);

// Of Image.transform(PERSPECTIVE), for an image whose corners come to `corners`. nullopt: they make no quadrangle.
// torchvision solves the same equations by least squares, which rounds otherwise in the last places.
std::optional<std::array<double, 8>> perspective_coefficients(const Corners& corners, kernels::Size size);

}  // namespace millrace
