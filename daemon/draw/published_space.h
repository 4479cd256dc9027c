// What torchvision's RandAugment, TrivialAugmentWide and AutoAugment choose from: operations by their names, and how
// strong each is in each of some bins (torchvision/transforms/autoaugment.py, _augmentation_space). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/image_view.h"

namespace millrace {

struct PublishedOperation {
  std::string_view name;   // as kernels::named_operation() knows it, or "Identity"
  bool is_signed = false;  // the magnitude's sign is drawn
  double wide = 0;         // TrivialAugmentWide's largest magnitude; shifts in pixels
  double narrow = 0;       // likewise of the others; shifts as a share of the side
};

// Those of RandAugment and TrivialAugmentWide, in torchvision's order; AutoAugment has "Invert" beside them.
std::span<const PublishedOperation> published_operations();

// nullptr: there is none of that name.
const PublishedOperation* published_operation(std::string_view name);

enum class Space : std::uint8_t { kNarrow, kWide };

// Of `bin` of so many, without its sign: torch.linspace() in single precision. 0 for operations that
// have none. REQUIRES: bin < bins, bins >= 2.
double magnitude_of(const PublishedOperation& operation, Space space, std::uint32_t bin, std::uint32_t bins,
                    kernels::Size size);

// torch.linspace(from, to, bins)[bin], an element at a time.
double linspace(double from, double to, std::uint32_t bin, std::uint32_t bins);

}  // namespace millrace
