// TIFF 6.0 and BigTIFF: the first directory.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_tiff(const ByteReader& bytes_untrusted);

// The orientation is the directory's own, else its XMP's. A directory whose values are more bytes than the file has is
// refused: libtiff would read them all.
Result<ImageHeader> read_tiff_header(ByteReader bytes_untrusted, Metadata metadata);

// Rows, a tile or a strip of PackBits, the directory's values and where the strips or tiles are. At the most what JPEG data in several scans
// may take of libtiff.
CodecMemory tiff_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 2> kTiffExtensions{"tif", "tiff"};

// All rows are decoded, whatever the crop. Between LZW, Deflate and rows as they are.
inline constexpr Format kTiffFormat{
    .format = ImageFormat::kTiff,
    .name = "tiff",
    .title = "TIFF",
    .extensions = kTiffExtensions,
    .features = {.alpha = true, .cmyk = true, .deep = true},
    .cost = {.picture_ns = 60'000, .pixel_ps = 15'000},
    .recognises = is_tiff,
    .read_header = read_tiff_header,
    .codec_memory = tiff_codec_memory,
};

}  // namespace millrace
