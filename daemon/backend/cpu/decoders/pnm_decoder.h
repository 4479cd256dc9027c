// PNM by kernels/raster: PBM, PGM and PPM of binary samples with Pillow's pixels, PAM with its alpha dropped. No library
// has a part in it, so it is the lane's own affair, whichever process runs the others (library_decoder.h). Thread-safe.
//
// The file must have all rows, whatever the box; what follows them does not count. Rows whose samples are the tensor's
// already are not even copied where PixelBuffer::kSlack bytes of the file stand before and behind the box: a remark in
// the header and bytes behind the rows see to it for a whole picture.
//
// Memory: the box, a byte or three a pixel, in `buffer`; or none.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels, in `buffer` or in the request's bytes. Errors: kInvalid (broken, truncated, other size), kDeadline,
// kExhausted.
Result<kernels::U8View> decode_pnm(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
