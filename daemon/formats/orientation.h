// The orientation in an image's metadata, as Pillow reads it. Pure functions, thread-safe; they allocate nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/base/bytes.h"

namespace millrace {

// The orientation tag (274) in IFD 0 of an EXIF block: a TIFF header and what follows, with "Exif\0\0" before it or
// not. nullopt when the tag is not there or the block is empty; 0 when the tag says nothing usable or the block is no
// TIFF.
std::optional<std::uint32_t> exif_orientation(ByteView exif_untrusted);

// The digit of the first tiff:Orientation in an XMP packet.
std::optional<std::uint32_t> xmp_orientation(ByteView xmp_untrusted);

}  // namespace millrace
