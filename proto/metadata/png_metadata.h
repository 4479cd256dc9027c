// The orientation in the chunks of a PNG file, by the rules of Pillow's PngImagePlugin: eXIf, or a tEXt of the keyword
// "exif"; "Raw profile type exif" (EXIF in hexadecimal digits) where there is neither; XMP under its keyword in tEXt,
// zTXt and iTXt. Of several of a kind the last one counts. Pure functions, thread-safe.
//
// Costs a walk over the chunks. Only texts that the answer depends on are decompressed, two at most, to 1 MiB at most,
// as Pillow has it (MAX_TEXT_CHUNK); one that is longer, or does not inflate, says nothing here.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/base/byte_reader.h"
#include "proto/base/result.h"

namespace millrace {

// What a file says of its orientation, any number. Where EXIF says one, XMP is not looked at.
struct StatedOrientation {
  std::optional<std::uint32_t> exif, xmp;
};

// kExhausted: no memory for a text.
Result<StatedOrientation> read_png_metadata(const ByteReader& bytes_untrusted);

}  // namespace millrace
