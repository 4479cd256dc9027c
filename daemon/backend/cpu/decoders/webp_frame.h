// The first frame of a WebP file (RFC 9649), found by the rules of libwebp's demultiplexer, which are Pillow's: the
// same files pass, and the same bytes go to the decoder. It keeps nothing of the other chunks, however many there are,
// where the demultiplexer keeps a record of each. Pure function, thread-safe.
#pragma once

#include "kernels/base/image_view.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

struct WebpFrame {
  kernels::Size canvas;
  kernels::Box place;  // on the canvas
  ByteView data;       // from the frame's first chunk on to its image's end, in the file's bytes
};

// kInvalid: no WebP, chunks that are cut off or contradict each other, in this frame or behind it; no image.
Result<WebpFrame> first_webp_frame(ByteView bytes_untrusted);

}  // namespace millrace
