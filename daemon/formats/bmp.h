// BMP, by kernels/raster/bmp.h.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_bmp(const ByteReader& bytes_untrusted);

// There is no orientation.
Result<ImageHeader> read_bmp_header(ByteReader bytes_untrusted, Metadata metadata);

// A palette.
CodecMemory bmp_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kBmpExtensions{"bmp"};

// Of rows as they are; run-length coded ones cost little more.
inline constexpr Format kBmpFormat{
    .format = ImageFormat::kBmp,
    .name = "bmp",
    .title = "BMP",
    .extensions = kBmpExtensions,
    .features = {.alpha = true},
    .cost = {.picture_ns = 5'000, .crop_pixel_ps = 1'500},
    .recognises = is_bmp,
    .read_header = read_bmp_header,
    .codec_memory = bmp_codec_memory,
};

}  // namespace millrace
