// WebP: RFC 9649, lossy frames RFC 6386.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_webp(const ByteReader& bytes_untrusted);

// The size is the canvas'.
Result<ImageHeader> read_webp_header(ByteReader bytes_untrusted, Metadata metadata);

// Plain lossy: rows. Others, whose picture or alpha is lossless: six bytes a pixel, and at the most the tables of as
// many groups of codes as the file has bits and the picture has tiles for (RFC 9649, 3.7.2).
CodecMemory webp_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kWebpExtensions{"webp"};

// The cost is fitted as PNG's. All rows are decoded, whatever the crop.
inline constexpr Format kWebpFormat{
    .format = ImageFormat::kWebp,
    .name = "webp",
    .title = "WebP",
    .extensions = kWebpExtensions,
    .features = {.alpha = true, .animation = true},
    .cost = {.picture_ns = 15'000, .byte_ns = 42, .pixel_ps = 4'000},
    .recognises = is_webp,
    .read_header = read_webp_header,
    .codec_memory = webp_codec_memory,
};

}  // namespace millrace
