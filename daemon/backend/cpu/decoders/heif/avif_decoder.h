// AVIF by libavif, which has dav1d decode: the first picture, stored as it is (what turns it is SourceInfo's). libavif
// is loaded when AVIF is first asked about, if it is installed (avif_library.h); nothing of the daemon depends on it.
//
// Pixels are those of Pillow, whose wheels have a later libavif: made RGB by libyuv, through libavif; alpha is decoded,
// for it decides how, and dropped. Where the library at hand goes another way than Pillow's with more than 8 bits a
// sample, samples are made 8 bits before (avif_pixels.h). A "clap" box counts for nothing, as there.
//
// Verdicts are the same for every box, because all of the picture is decoded. Thread-safe. No threads are started.
//
// Memory: the box, a byte or three a pixel, in `buffer`; the picture's planes and rows of it in RGB, as formats/avif.h
// has it. Where memory ends all the same, libavif before version 1 ends the process.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// kUnsupported: libavif is not there; says what to install.
Result<void> can_decode_avif();

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported, kDeadline, kExhausted.
Result<kernels::U8View> decode_avif(const DecodeRequest& request, PixelBuffer& buffer);

// Loads the library, if it is there, and decodes a picture of a few pixels. For a process that will soon be shut in
// (isolation/sandbox.h): libraries cannot be loaded there, and dav1d and libyuv ask once what the processor can.
void prepare_avif();

}  // namespace millrace
