// The random and computed choices for one sample, in pixels: the same on every backend. Value. A sample that comes in
// several views has such choices for each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
//   source ──crop──▶ crop's ──resize──▶ resized ──window──▶ window's ──canvas──▶ canvas's ──flip──▶ output()
//
struct SampleGeometry {
  Box crop;      // in the oriented source
  Size resized;  // of the whole crop
  Box window;    // the part of the resized image that is kept (the centre crop, or all of it)
  bool flip = false;
  // What the output shows, in pixels of the resized image, where that is more than there is: the rest is padded as the
  // recipe says. The window is then all of it that is there (of constant padding: and shown), or, where that is nothing,
  // some pixel. nullopt: the window is the output.
  std::optional<Box> canvas{};
  std::optional<Filter> filter{};  // that was drawn; nullopt: the recipe's
  // What the parameters of augmentation are drawn from, in whichever thread carries it out (daemon/draw). nullopt: the
  // recipe has none.
  std::optional<RandomKey> draws{};
  std::uint64_t step_pixel_ps = 0;  // what it is expected to cost for each pixel of the output
  std::uint32_t kept_pictures = 0;  // as large as the output, that it takes at most beside the one it works on

  // Of a recipe with views: each one's, in order; what stands beside them is then the first one's, but for `crop`, the
  // smallest box around all of theirs.
  std::vector<SampleGeometry> views{};

  Box shown() const { return canvas.value_or(window); }  // of the resized image
  Size output() const {
    const Box box = shown();
    return {static_cast<std::uint32_t>(box.width), static_cast<std::uint32_t>(box.height)};
  }
  friend bool operator==(const SampleGeometry&, const SampleGeometry&) = default;
};

// One for each of views_of(recipe).
inline std::span<const SampleGeometry> views_of(const SampleGeometry& geometry) {
  return geometry.views.empty() ? std::span(&geometry, 1) : std::span(geometry.views);
}

}  // namespace millrace
