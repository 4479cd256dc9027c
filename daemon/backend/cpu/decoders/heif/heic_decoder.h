// HEIC: the boxes of the file by us (formats/heif_boxes.h), HEVC by libde265, which is loaded when HEIC is first asked
// about, if it is installed (hevc_library.h); RGB by us, as libheif makes it in pillow-heif (heic_pixels.h). libheif
// has no part in it: it starts threads, and brings an encoder under the GPL along.
//
// The picture is stored as it is, but for its "clap" box (what turns it is SourceInfo's). Its alpha is not looked at.
// The parts of a grid are decoded one at a time. No threads are started.
//
// Verdicts are the same for every box, because all of the picture is decoded. Thread-safe.
//
// Memory: the box, a byte or three a pixel, in `buffer`; in libde265 a picture or a part of it, as formats/heic.h has
// it.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// kUnsupported: libde265 is not there; says what to install.
Result<void> can_decode_heic();

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported, kDeadline, kExhausted.
Result<kernels::U8View> decode_heic(const DecodeRequest& request, PixelBuffer& buffer);

// Loads the library, if it is there, and decodes a picture of a few pixels. For a process that will soon be shut in
// (isolation/sandbox.h), where libraries cannot be loaded.
void prepare_heic();

}  // namespace millrace
