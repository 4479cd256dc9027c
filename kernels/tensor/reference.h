// The two specifications as plain loops over whole pictures: slow, obviously right, what every fast form is tested
// against. Of the code that the fast forms use they share the filters' curves (filter_value) and the outputs of a pixel
// (element_bits) alone. They allocate. Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/base/image_view.h"
#include "kernels/tensor/resample_spec.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::kernels::reference {

// REQUIRES: is_valid(spec); `source` has spec.source's size and `out` the window's, both spec.channels.
void resample(const ResampleSpec& spec, const U8View& source, const MutableU8View& out);

// REQUIRES: `tensor` has StoreTable::image_bytes() of the picture's size; the picture has 1 or 3 channels.
void store(const StoreSpec& spec, const U8View& picture, Flip flip, std::span<std::byte> tensor);

}  // namespace millrace::kernels::reference
