// A picture as a recipe with padding shows it: what there is of the resized image, and around it what the recipe says.
#pragma once

#include "daemon/model/geometry.h"
#include "kernels/base/image_view.h"
#include "kernels/base/time_limit.h"
#include "proto/base/recipe.h"

namespace millrace {

// `inner`: the window's pixels, flipped if the geometry says so; `picture`, as large as the output, gets them in their
// place, flipped likewise, and the rest. Modes as numpy.pad's of those names, however far the picture reaches. false: the
// time limit was over first. REQUIRES: geometry.canvas; both RGB of 8 bits.
bool pad_picture(const kernels::U8View& inner, const Pad& pad, const SampleGeometry& geometry,
                 kernels::TimeLimit& limit, const kernels::MutableU8View& picture);

}  // namespace millrace
