// Whether a card has room for a resampling, known from sizes alone: asked of every sample, before there is a batch.
// Thread-safe: plain functions.
#pragma once

#include <string_view>

#include "kernels/base/image_view.h"
#include "kernels/tensor/resample_spec.h"

namespace millrace::hls {

// `spec`: how the crop becomes the window; kernels::is_valid(). Empty: whatever the planner says
// of such an image, it is not for want of room. Else why not; a little stricter than the planner, which has the tables.
std::string_view why_no_room(const kernels::ResampleSpec& spec);

}  // namespace millrace::hls
