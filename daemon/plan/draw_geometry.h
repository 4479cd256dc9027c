// The boxes, sizes and flips of one sample: a pure function of the recipe, the source's size and (seed, epoch, sample
// id). It depends on nothing else: no backend, no order of work and no restart changes it. Thread-safe.
#pragma once

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/random_key.h"
#include "proto/base/recipe.h"
#include "proto/base/result.h"

namespace millrace {

// Steps and rounding as torchvision's (get_params of RandomResizedCrop, CenterCrop, Resize) and transformers' (see
// resized_size.h). Errors (kInvalid): a box outside the image, a centre crop larger than the image, more grid cells
// than pixels, a crop too long for a smart resize, an output over the limits of `max_side` or not a whole number of
// patches; a box or a size of the sample's own where the recipe has views.
Result<SampleGeometry> draw_geometry(const Recipe& recipe, const SampleOverrides& overrides, const SourceInfo& source,
                                     RandomKey key, std::uint32_t max_side);

}  // namespace millrace
