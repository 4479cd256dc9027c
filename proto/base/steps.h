// Steps of augmentation: what a recipe may do to a sample between its flip and its normalisation, with random
// parameters. Plain values for designated initialisers.
//
//   Recipe recipe = Recipe::train(224);
//   recipe.steps = {{.kind = steps::RandAugment{}},
//                   {.probability = 0.2F, .kind = steps::Simple::kGrayscale}};
//   recipe.erasing = Erasing{.probability = 0.25F};
//
// Each works on the RGB image of 8 bits that the steps before it have made, bit for bit as torchvision does on a PIL
// image given the same parameters (of timm's, as timm does). Any bits may stand in them: whether they make sense the
// daemon says (daemon/plan/steps_check.h), and nobody else. Bounds and meanings of the parameters are with the messages
// of the same names (proto/rpc's step.proto).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace millrace {

// A number that is drawn uniformly for each sample, from `low` up to `high`; where they are equal it is that one.
struct Interval {
  float low = 0;
  float high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

enum class PixelSampling : std::uint8_t { kNearest, kBilinear, kBicubic };

using Fill = std::array<std::uint8_t, 3>;  // red, green, blue

// How a transform that moves pixels reads between them, and what stands where it finds none.
struct Surroundings {
  PixelSampling sampling = PixelSampling::kNearest;
  Fill fill{};
  friend bool operator==(const Surroundings&, const Surroundings&) = default;
};

struct Step;

namespace steps {

enum class Simple : std::uint8_t { kHorizontalFlip, kVerticalFlip, kGrayscale, kInvert, kAutoContrast, kEqualize };

struct Posterize {
  std::uint32_t bits = 4;  // that are kept
  friend bool operator==(const Posterize&, const Posterize&) = default;
};
struct Solarize {
  float threshold = 128;  // values of at least that are inverted
  friend bool operator==(const Solarize&, const Solarize&) = default;
};
struct Sharpness {
  Interval factor{1, 1};
  friend bool operator==(const Sharpness&, const Sharpness&) = default;
};
struct ColorJitter {                                               // those that are set, in random order
  std::optional<Interval> brightness{}, contrast{}, saturation{};  // factors
  std::optional<Interval> hue{};                                   // turns
  friend bool operator==(const ColorJitter&, const ColorJitter&) = default;
};
struct GaussianBlur {             // torchvision's
  std::uint32_t kernel_size = 3;  // pixels
  Interval sigma{0.1F, 2};        // pixels
  friend bool operator==(const GaussianBlur&, const GaussianBlur&) = default;
};
struct PillowBlur {          // ImageFilter.GaussianBlur
  Interval radius{0.1F, 2};  // pixels
  friend bool operator==(const PillowBlur&, const PillowBlur&) = default;
};
struct Rotation {
  Interval degrees{};
  Surroundings around{};
  friend bool operator==(const Rotation&, const Rotation&) = default;
};
struct Affine {
  Interval degrees{};
  float translate_x = 0, translate_y = 0;  // largest shifts, as shares of width and height
  Interval scale{1, 1};
  Interval shear_x{}, shear_y{};  // degrees
  Surroundings around{};
  friend bool operator==(const Affine&, const Affine&) = default;
};
struct Shift {                 // by whole pixels: RandomCrop to the image's own size, padded by so many
  std::uint32_t x = 0, y = 0;  // at most, each way
  Fill fill{};
  friend bool operator==(const Shift&, const Shift&) = default;
};
struct Perspective {
  float distortion = 0.5F;
  Surroundings around{};
  friend bool operator==(const Perspective&, const Perspective&) = default;
};
struct RandAugment {
  std::uint32_t operations = 2;  // a sample
  std::uint32_t magnitude = 9;
  std::uint32_t bins = 31;
  Surroundings around{};
  friend bool operator==(const RandAugment&, const RandAugment&) = default;
};
struct TrivialAugmentWide {
  std::uint32_t bins = 31;
  Surroundings around{};
  friend bool operator==(const TrivialAugmentWide&, const TrivialAugmentWide&) = default;
};
enum class AugmentPolicy : std::uint8_t { kImageNet, kCifar10, kSvhn };
struct AutoAugment {
  AugmentPolicy policy = AugmentPolicy::kImageNet;
  Surroundings around{};
  friend bool operator==(const AutoAugment&, const AutoAugment&) = default;
};
struct TimmRandAugment {  // "rand-m9-mstd0.5-inc1"
  std::uint32_t operations = 2;
  float magnitude = 9;
  float magnitude_std = 0.5F;
  float probability = 0.5F;  // of each operation
  bool increasing = true;
  Fill fill{};
  std::optional<PixelSampling> sampling{};  // nullopt: bilinear or bicubic, drawn for each operation
  friend bool operator==(const TimmRandAugment&, const TimmRandAugment&) = default;
};
// Chains of operations, each of the image itself, and a weighted sum of what they make and of the image. Weights are of
// Dirichlet distributions.
struct AugMix {                // torchvision's
  std::uint32_t severity = 3;  // magnitudes are of the weakest so many of ten
  std::uint32_t width = 3;     // chains
  std::uint32_t depth = 0;     // operations a chain; 0: 1 to 3, drawn
  float alpha = 1;             // of the distributions
  bool all_operations = true;  // those that change colours, too
  Surroundings around{.sampling = PixelSampling::kBilinear};
  friend bool operator==(const AugMix&, const AugMix&) = default;
};
struct TimmAugMix {  // "augmix-m3-w3"
  float magnitude = 3;
  std::optional<float> magnitude_std{};  // nullopt: magnitudes are uniform, up to that one
  std::uint32_t width = 3;               // chains
  std::uint32_t depth = 0;               // operations a chain; 0: 1 to 3, drawn
  float alpha = 1;
  Fill fill{};
  std::optional<PixelSampling> sampling{};  // nullopt: bilinear or bicubic, drawn for each operation
  friend bool operator==(const TimmAugMix&, const TimmAugMix&) = default;
};
struct Sequence {
  std::vector<Step> steps;
  friend bool operator==(const Sequence&, const Sequence&);
};
struct AnyOrder {
  std::vector<Step> steps;
  friend bool operator==(const AnyOrder&, const AnyOrder&);
};
struct OneOf {
  std::vector<Step> steps;
  std::vector<float> weights;  // empty: all alike
  friend bool operator==(const OneOf&, const OneOf&);
};

using Kind = std::variant<Simple, Posterize, Solarize, Sharpness, ColorJitter, GaussianBlur, PillowBlur, Rotation,
                          Affine, Perspective, RandAugment, TrivialAugmentWide, AutoAugment, TimmRandAugment, Sequence,
                          AnyOrder, OneOf, Shift, AugMix, TimmAugMix>;

}  // namespace steps

struct Step {
  static constexpr std::uint32_t kMost = 64;       // in a recipe, and operations a sample
  static constexpr std::uint32_t kMostNested = 8;  // in each other
  static constexpr std::uint32_t kMostChains = 8;  // of one AugMix
  float probability = 1;                           // that it is done at all
  steps::Kind kind = steps::Simple::kInvert;
  friend bool operator==(const Step&, const Step&) = default;
};

// Of these and of those within them.
std::size_t count_steps(const std::vector<Step>& steps);

namespace steps {
inline bool operator==(const Sequence& a, const Sequence& b) {
  return a.steps == b.steps;
}
inline bool operator==(const AnyOrder& a, const AnyOrder& b) {
  return a.steps == b.steps;
}
inline bool operator==(const OneOf& a, const OneOf& b) {
  return a.steps == b.steps && a.weights == b.weights;
}
}  // namespace steps

// A rectangle of the finished tensor overwritten: torchvision's RandomErasing.
struct Erasing {
  enum class Noise : std::uint8_t { kNone, kChannel, kPixel };
  float probability = 0.5F;
  Interval scale{0.02F, 0.33F};  // share of the image's area
  Interval ratio{0.3F, 3.3F};    // height / width
  std::array<float, 3> value{};  // in the tensor's units, by channel in the order R, G, B
  Noise noise = Noise::kNone;    // standard normal, instead of `value`
  std::uint32_t most = 1;        // rectangles: 1 to so many, each of a share of the area / how many
  friend bool operator==(const Erasing&, const Erasing&) = default;
};

}  // namespace millrace
