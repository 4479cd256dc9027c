// L3 by kernels/l3, with the pixels that the PNG with the same samples has: alpha is dropped, 16-bit colour keeps its upper
// byte, 16-bit grey is cut off at 255. No library has a part in it, so it is the lane's own affair, whichever process runs
// the others (library_decoder.h). Thread-safe.
//
// Both checksums of a file of version 2 are compared, whatever the box: of a damaged file no pixels come. Tiles that the box
// meets are decoded, and no others. Version 1 has no checksum, and of it a patch is refused that does not add up.
//
// Memory: the box, a byte or three a pixel, in `buffer`; a tile on the stack; of version 1 12 bytes a patch.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid ("a broken L3 file: ...", other size), kDeadline, kExhausted. REQUIRES: 64
// readable bytes behind the request's.
Result<kernels::U8View> decode_l3(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
