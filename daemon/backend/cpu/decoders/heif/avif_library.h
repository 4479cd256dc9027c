// libavif, loaded at run time: a host without it has all but AVIF, and the encoders that it brings along are no part of
// the daemon. The functions that decoding takes, with the types of the headers that this was built with; another
// soname is another library. Immutable, thread-safe.
#pragma once

#include <avif/avif.h>

#include <string>

#include "proto/base/result.h"

namespace millrace {

struct AvifLibrary {
  decltype(&::avifDecoderCreate) create = nullptr;
  decltype(&::avifDecoderDestroy) destroy = nullptr;
  decltype(&::avifDecoderSetSource) set_source = nullptr;
  decltype(&::avifDecoderSetIOMemory) set_memory = nullptr;
  decltype(&::avifDecoderParse) parse = nullptr;
  decltype(&::avifDecoderReset) reset = nullptr;
  decltype(&::avifDecoderNextImage) next_image = nullptr;
  decltype(&::avifResultToString) text_of = nullptr;
  decltype(&::avifCodecName) codec_name = nullptr;
  decltype(&::avifImageCreateEmpty) create_image = nullptr;
  decltype(&::avifImageDestroy) destroy_image = nullptr;
  decltype(&::avifImageSetViewRect) set_view = nullptr;
  decltype(&::avifRGBImageSetDefaults) set_defaults = nullptr;
  decltype(&::avifImageYUVToRGB) make_rgb = nullptr;
};

// Never unloaded. kUnsupported: it is not installed, or has no dav1d; says what to install.
Result<const AvifLibrary*> avif_library();

}  // namespace millrace
