// PNG by our own inflating and unfiltering, some three times as fast as zlib and libspng: files that are not
// interlaced, whole and undamaged. The pixels and the verdict are png_decoder.h's. Thread-safe.
#pragma once

#include <optional>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/cpu/decoders/png/png_chunks.h"

namespace millrace {

// The box's pixels in `buffer`. nullopt: the file is not for us, so libspng has to say. Errors: kDeadline, kExhausted,
// and kInvalid where a chunk behind the rows is damaged. `chunks`: as open() makes them, of the request's size.
std::optional<Result<kernels::U8View>> decode_png_quickly(const DecodeRequest& request, PngChunks chunks,
                                                          PixelBuffer& buffer);

}  // namespace millrace
