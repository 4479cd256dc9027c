#include "daemon/draw/published_space.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr double kShift = 150.0 / 331.0;

constexpr PublishedOperation kOperations[] = {
    {"Identity", false, 0, 0},        {"ShearX", true, 0.99, 0.3},      {"ShearY", true, 0.99, 0.3},
    {"TranslateX", true, 32, kShift}, {"TranslateY", true, 32, kShift}, {"Rotate", true, 135, 30},
    {"Brightness", true, 0.99, 0.9},  {"Color", true, 0.99, 0.9},       {"Contrast", true, 0.99, 0.9},
    {"Sharpness", true, 0.99, 0.9},   {"Posterize", false, 6, 4},       {"Solarize", false, 255, 255},
    {"AutoContrast", false, 0, 0},    {"Equalize", false, 0, 0},        {"Invert", false, 0, 0}};
constexpr std::size_t kDrawn = std::size(kOperations) - 1;  // without "Invert"

}  // namespace

double linspace(double from, double to, std::uint32_t bin, std::uint32_t bins) {
  const auto first = static_cast<float>(from), last = static_cast<float>(to);
  const float step = (last - first) / static_cast<float>(bins - 1);
  if (bin < bins / 2) return first + step * static_cast<float>(bin);
  return last - step * static_cast<float>(bins - 1 - bin);
}

std::span<const PublishedOperation> published_operations() {
  return std::span(kOperations).first(kDrawn);
}

const PublishedOperation* published_operation(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                         [&](const PublishedOperation& one) { return one.name == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

double magnitude_of(const PublishedOperation& operation, Space space, std::uint32_t bin, std::uint32_t bins,
                    kernels::Size size) {
  double most = space == Space::kWide ? operation.wide : operation.narrow;
  if (space == Space::kNarrow && operation.name == "TranslateX") most *= size.width;
  if (space == Space::kNarrow && operation.name == "TranslateY") most *= size.height;
  const double last = bins - 1;
  if (operation.name == "Posterize") {  // bits, from 8 down
    const auto unit = static_cast<float>(last / most);
    return 8 - std::nearbyint(static_cast<float>(bin) / unit);
  }
  if (operation.name == "Solarize") return linspace(most, 0, bin, bins);
  return linspace(0, most, bin, bins);
}

}  // namespace millrace
