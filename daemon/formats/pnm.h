// PNM: portable anymaps, by kernels/raster/pnm.h.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_pnm(const ByteReader& bytes_untrusted);

// There is no orientation.
Result<ImageHeader> read_pnm_header(ByteReader bytes_untrusted, Metadata metadata);

// Nothing but the pixels.
CodecMemory pnm_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 5> kPnmExtensions{"pbm", "pgm", "ppm", "pnm", "pam"};

// Rows are copied, or used where they are.
inline constexpr Format kPnmFormat{
    .format = ImageFormat::kPnm,
    .name = "pnm",
    .title = "PNM",
    .extensions = kPnmExtensions,
    .features = {.alpha = true, .deep = true},
    .cost = {.picture_ns = 5'000, .crop_pixel_ps = 500},
    .recognises = is_pnm,
    .read_header = read_pnm_header,
    .codec_memory = pnm_codec_memory,
};

}  // namespace millrace
