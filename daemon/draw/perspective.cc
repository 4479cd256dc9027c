#include "daemon/draw/perspective.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace millrace {
namespace {

constexpr std::size_t kUnknowns = 8;
constexpr double kLargest = 1e9;  // of coefficients that kernels/augment takes
using Row = std::array<double, kUnknowns + 1>;
using Equations = std::array<Row, kUnknowns>;

// Two for each corner: a pixel (x, y) of the result is taken from (u, v) of the source.
Equations equations(const Corners& from, const Corners& to) {
  Equations rows{};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto [x, y] = from[i];
    const auto [u, v] = to[i];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
  }
  return rows;
}

// Gauss and Jordan, with the largest pivot of a column.
std::optional<std::array<double, kUnknowns>> solve(Equations rows) {
  for (std::size_t column = 0; column < kUnknowns; ++column) {
    const auto largest =
        std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(column), rows.end(),
                         [&](const Row& a, const Row& b) { return std::abs(a[column]) < std::abs(b[column]); });
    if (!(std::abs((*largest)[column]) > 1e-12)) return std::nullopt;
    std::swap(*largest, rows[column]);
    const Row pivot = rows[column];
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      if (i == column) continue;
      const double factor = rows[i][column] / pivot[column];
      for (std::size_t k = column; k <= kUnknowns; ++k) rows[i][k] -= factor * pivot[k];
    }
  }
  std::array<double, kUnknowns> solution{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    solution[i] = static_cast<float>(rows[i][kUnknowns] / rows[i][i]);  // as torchvision hands them on
  }
  return solution;
}

}  // namespace

Corners draw_corners(float distortion, kernels::Size size, RandomStream& random) {
  const int most_x = static_cast<int>(static_cast<double>(distortion) * (size.width / 2));
  const int most_y = static_cast<int>(static_cast<double>(distortion) * (size.height / 2));
  const auto moved = [&](int most) { return static_cast<double>(random.below(static_cast<std::uint64_t>(most) + 1)); };
  const double right = size.width - 1, bottom = size.height - 1;
  Corners corners;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const double x = moved(most_x), y = moved(most_y);
    corners[i] = {i == 1 || i == 2 ? right - x : x, i >= 2 ? bottom - y : y};
  }
  return corners;
}

std::optional<std::array<double, 8>> perspective_coefficients(const Corners& corners, kernels::Size size) {
  const double right = size.width - 1, bottom = size.height - 1;
  const Corners image{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  const auto solution = solve(equations(corners, image));
  const auto is_moderate = [](double value) { return std::abs(value) <= kLargest; };
  if (!solution || !std::all_of(solution->begin(), solution->end(), is_moderate)) return std::nullopt;
  return solution;
}

}  // namespace millrace
