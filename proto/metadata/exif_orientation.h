// The orientation in an image's metadata, as Pillow reads it. Pure functions, thread-safe; they allocate nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/base/byte_reader.h"
#include "proto/base/bytes.h"

namespace millrace {

// The orientation tag (274) in IFD 0 of an EXIF block: a TIFF header and what follows, with "Exif\0\0" before it or
// not. nullopt when the tag is not there or the block is empty; 0 when the tag says nothing usable or the block is no
// TIFF.
std::optional<std::uint32_t> exif_orientation(ByteView exif_untrusted);

// The value of an orientation tag of this TIFF type at `at`; 0: of a type that is no number to Pillow, as bytes and texts
// are, or no whole one.
std::uint32_t orientation_value(const ByteReader& bytes_untrusted, bool big_endian, std::uint32_t type, std::size_t at);

// The digit of the first tiff:Orientation in an XMP packet.
std::optional<std::uint32_t> xmp_orientation(ByteView xmp_untrusted);

}  // namespace millrace
