// The boxes, sizes and flips of one sample: a pure function of the recipe, the source's size and (seed, epoch, sample
// id). Whichever backend, order or restart, the answer is the same. Thread-safe.
#pragma once

#include <optional>

#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"
#include "daemon/model/recipe.h"
#include "daemon/plan/random.h"
#include "proto/base/result.h"

namespace millrace {

// Steps and rounding as torchvision's (get_params of RandomResizedCrop, CenterCrop, Resize). `box`: the sample's own,
// instead of the recipe's crop. Errors (kInvalid): a box outside the image, a centre crop larger than the image, an
// output over the limits of `max_side`.
Result<SampleGeometry> draw_geometry(const Recipe& recipe, const std::optional<Box>& box, const SourceInfo& source,
                                     RandomKey key, std::uint32_t max_side);

}  // namespace millrace
