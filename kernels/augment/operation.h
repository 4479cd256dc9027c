// One step of an augmentation with its parameters drawn already. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/image_view.h"

namespace millrace::kernels {

enum class Step : std::uint8_t {
  kInvert,          // 255 - v
  kPosterize,       // keeps the `value` highest bits, 1..8
  kSolarize,        // inverts values of at least `factor`
  kBrightness,      // ImageEnhance.Brightness(factor)
  kContrast,        // ImageEnhance.Contrast(factor)
  kSaturation,      // ImageEnhance.Color(factor)
  kSharpness,       // ImageEnhance.Sharpness(factor)
  kGrey,            // convert("L"), three times
  kAutocontrast,    // ImageOps.autocontrast
  kEqualize,        // ImageOps.equalize
  kHue,             // `value`, modulo 256, is added to H of HSV; torchvision has int(hue_factor * 255) for it
  kFlipHorizontal,  // left becomes right
  kFlipVertical,    // top becomes bottom
  kQuarterTurns,    // `value` of them, 0..3, counter-clockwise: Image.transpose(ROTATE_90, ...)
  kAffine,          // Image.transform(AFFINE, matrix[0..5], filter, fillcolor=fill), of the picture's own size
  kPerspective,     // Image.transform(PERSPECTIVE, matrix[0..7], ...), likewise
  kErase,           // `box`, which lies inside the picture, becomes `fill`
  kGaussianBlur,  // torchvision's gaussian_blur: `value` pixels each way, odd, 1..99, half of it (down) less than each
                  // side; a deviation of `factor` pixels, above 0. See README.md for how equal it is
  kPillowBlur,    // ImageFilter.GaussianBlur(factor), above 0 and up to 100
  kSolarizeAdd,   // adds `value`, -255..255, to values below `factor`, and keeps what becomes of them within 0..255
  // A weighted sum of pictures, in float32 and in this order, whose values are cut to 0..255 and truncated. Weights
  // are 0..1. In between, the picture neither changes its size nor starts another sum.
  kMixStart,  // the picture, of weight `factor`
  kMixAdd,    // what became of it since, likewise; then it is again what it was at the start
  kMixEnd,  // after 1 to kMostMixed of kMixAdd; the sum, blended into the start by `factor`: Image.blend(start, sum, factor)
};

inline constexpr std::size_t kSteps = static_cast<std::size_t>(Step::kMixEnd) + 1;

enum class Sampling : std::uint8_t { kNearest, kBilinear, kBicubic };

struct Operation {
  Step step = Step::kInvert;
  Sampling sampling = Sampling::kNearest;
  std::array<std::uint8_t, 3> fill{};  // red, green, blue
  std::int32_t value = 0;
  float factor = 1;
  Box box;
  std::array<double, 8> matrix{};  // from a pixel of the result to one of the source, as Pillow takes it
};

constexpr int kMostOperations = 64;
constexpr int kMostMixed = 8;                                 // in a sum, beside its start
constexpr int kLargestKernel = 99;                            // of kGaussianBlur, pixels
constexpr float kLargestPillowBlur = 100;                     // pixels
constexpr int kLongestSide = 1 << 14;                         // pixels
constexpr std::int64_t kLargestArea = std::int64_t{1} << 26;  // pixels

// Of the result. REQUIRES: is_valid(size, operations).
Size size_after(Size size, std::span<const Operation> operations);

// Whether apply() takes these: sizes and their number within the bounds above, all parameters finite and within what
// Step says, sums begun and ended.
bool is_valid(Size size, std::span<const Operation> operations);

}  // namespace millrace::kernels
