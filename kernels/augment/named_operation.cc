#include "kernels/augment/named_operation.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

namespace millrace::kernels {
namespace {

struct Named {
  std::string_view name;
  Step step;
};

constexpr Named kByMagnitude[] = {{"Brightness", Step::kBrightness},
                                  {"Color", Step::kSaturation},
                                  {"Contrast", Step::kContrast},
                                  {"Sharpness", Step::kSharpness}};
constexpr Named kPlain[] = {
    {"AutoContrast", Step::kAutocontrast}, {"Equalize", Step::kEqualize}, {"Invert", Step::kInvert}};

double radians(double degrees) {
  return degrees * (std::numbers::pi / 180.0);
}

// To 15 decimals, as Python's round().
double rounded(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.15f", value);
  return std::strtod(digits, nullptr);
}

// The inverse of a shear about the upper left corner. torchvision passes the angle through degrees.
void shear(double x, double y, Operation& operation) {
  const double sx = radians(std::atan(x) * (180.0 / std::numbers::pi));
  const double sy = radians(std::atan(y) * (180.0 / std::numbers::pi));
  const double a = std::cos(-sy) / std::cos(sy), b = -std::cos(-sy) * std::tan(sx) / std::cos(sy);
  const double c = std::sin(-sy) / std::cos(sy), d = -std::sin(-sy) * std::tan(sx) / std::cos(sy) + 1.0;
  operation.matrix = {d, -b, 0, -c, a, 0};
}

// Image.rotate: counter-clockwise about the centre. Quarter turns are turns where the size allows.
void rotate(double degrees, Size size, Operation& operation) {
  double angle = std::fmod(degrees, 360.0);
  if (angle < 0) angle += 360.0;
  const bool is_square = size.width == size.height;
  if (angle == 0 || angle == 180 || (is_square && (angle == 90 || angle == 270))) {
    operation.step = Step::kQuarterTurns;
    operation.value = static_cast<int>(angle / 90);
    return;
  }
  const double turn = -radians(angle);
  const double cosine = rounded(std::cos(turn)), sine = rounded(std::sin(turn)), back = rounded(-std::sin(turn));
  const double x = size.width / 2.0, y = size.height / 2.0;
  operation.matrix = {cosine, sine, cosine * -x + sine * -y + 0.0 + x, back, cosine, back * -x + cosine * -y + 0.0 + y};
}

}  // namespace

std::optional<Operation> named_operation(std::string_view name, double magnitude, Size size, Sampling sampling,
                                         const std::array<std::uint8_t, 3>& fill) {
  Operation operation;
  operation.sampling = sampling;
  operation.fill = fill;
  for (const Named& named : kByMagnitude) {
    if (named.name != name) continue;
    operation.step = named.step;
    operation.factor = static_cast<float>(1.0 + magnitude);
    return operation;
  }
  for (const Named& named : kPlain) {
    if (named.name != name) continue;
    operation.step = named.step;
    return operation;
  }
  operation.value = static_cast<int>(magnitude);
  operation.factor = static_cast<float>(magnitude);
  operation.step = name == "Posterize" ? Step::kPosterize : name == "Solarize" ? Step::kSolarize : Step::kAffine;
  if (operation.step != Step::kAffine) return operation;
  if (name == "ShearX") {
    shear(magnitude, 0, operation);
  } else if (name == "ShearY") {
    shear(0, magnitude, operation);
  } else if (name == "TranslateX") {
    operation.matrix = {1, 0, -static_cast<double>(operation.value), 0, 1, 0};
  } else if (name == "TranslateY") {
    operation.matrix = {1, 0, 0, 0, 1, -static_cast<double>(operation.value)};
  } else if (name == "Rotate") {
    rotate(magnitude, size, operation);
  } else {
    return std::nullopt;
  }
  return operation;
}

}  // namespace millrace::kernels
