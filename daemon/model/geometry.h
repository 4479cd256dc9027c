// The random and computed choices for one sample, in pixels: the same on every backend. Value.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/random_key.h"
#include "proto/base/recipe.h"

namespace millrace {

// What a sample brings of its own.
struct SampleOverrides {
  std::optional<Box> box;    // instead of the recipe's crop
  std::optional<Size> size;  // instead of what the recipe's resize would make of the crop
};

// From the source, once its orientation is applied; the sizes between the steps:
//
//   source ──crop──▶ crop's ──resize──▶ resized ──window──▶ window's ──flip──▶ output()
//
struct SampleGeometry {
  Box crop;      // in the oriented source
  Size resized;  // of the whole crop
  Box window;    // the part of the resized image that is kept (the centre crop, or all of it)
  bool flip = false;
  // What the parameters of augmentation are drawn from, in whichever thread carries it out (daemon/draw). nullopt: the
  // recipe has none.
  std::optional<RandomKey> draws{};
  std::uint64_t step_pixel_ps = 0;  // what it is expected to cost for each pixel of the output

  Size output() const { return {static_cast<std::uint32_t>(window.width), static_cast<std::uint32_t>(window.height)}; }
  friend bool operator==(const SampleGeometry&, const SampleGeometry&) = default;
};

}  // namespace millrace
