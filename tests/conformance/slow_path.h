// The independent way from encoded bytes to a tensor that backends are held against: whole-image decoding by the
// libraries' simplest calls, and the kernels' slow references; nothing of daemon/backend. Thread-safe: plain functions;
// a library that fails throws.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"
#include "proto/base/recipe.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

// One channel for grey files, three (RGB) for all others. JPEG in colour or grey, PNG of 8 bits, still WebP.
Pixels decode_slowly(ImageFormat format, ByteView bytes);

// The tensor of one image.
std::vector<std::byte> make_slowly(const EncodedImage& image, const SampleGeometry& geometry, const Recipe& recipe);

}  // namespace millrace
