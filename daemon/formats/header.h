// One header parser a format; probe.cc has the table of them. Each reads untrusted bytes that begin with its format's
// signature and fills in what it finds. Errors: kInvalid; kExhausted, no memory for metadata that is in pieces or
// compressed. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/formats/byte_reader.h"
#include "daemon/model/recipe.h"
#include "proto/base/result.h"

namespace millrace {

struct ImageHeader {
  Size size;
  std::optional<std::uint32_t> exif;  // orientation as it stands in the file, any number
  std::optional<std::uint32_t> xmp;
};

enum class Metadata { kSkip, kRead };

// JPEG: ITU-T T.81, Annex B. The size is the first frame header's; orientation is looked for up to the first scan.
Result<ImageHeader> read_jpeg_header(ByteReader bytes_untrusted, Metadata metadata);

// PNG: W3C PNG (third edition), 5 and 11. Orientation is looked for in all chunks, for they may follow the image data.
Result<ImageHeader> read_png_header(ByteReader bytes_untrusted, Metadata metadata);

// WebP: RFC 9649. The size is the canvas'.
Result<ImageHeader> read_webp_header(ByteReader bytes_untrusted, Metadata metadata);

// The error of a file that ends before its size is known; `what` is missing, "the frame header".
Error cut_off(const char* what);

}  // namespace millrace
