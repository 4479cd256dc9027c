// The random and computed choices for one sample, in pixels: the same on every backend. Value.
#pragma once

#include "daemon/model/recipe.h"

namespace millrace {

// source (oriented) ──crop──▶ crop.width x crop.height ──resize──▶ resized ──window──▶ window.width x window.height
// ──flip──▶ output
struct SampleGeometry {
  Box crop;      // in the oriented source
  Size resized;  // of the whole crop
  Box window;    // the part of the resized image that is kept (the centre crop, or all of it)
  bool flip = false;

  Size output() const { return {static_cast<std::uint32_t>(window.width), static_cast<std::uint32_t>(window.height)}; }
  friend bool operator==(const SampleGeometry&, const SampleGeometry&) = default;
};

}  // namespace millrace
