// GIF, by kernels/raster/gif.h.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_gif(const ByteReader& bytes_untrusted);

// The size is that of a canvas that holds the first picture. There is no orientation.
Result<ImageHeader> read_gif_header(ByteReader bytes_untrusted, Metadata metadata);

// Tables of codes.
CodecMemory gif_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kGifExtensions{"gif"};

// All of the first picture is decoded, whatever the crop.
inline constexpr Format kGifFormat{
    .format = ImageFormat::kGif,
    .name = "gif",
    .title = "GIF",
    .extensions = kGifExtensions,
    .features = {.alpha = true, .passes = true, .animation = true},
    .cost = {.picture_ns = 20'000, .pixel_ps = 6'000},
    .recognises = is_gif,
    .read_header = read_gif_header,
    .codec_memory = gif_codec_memory,
};

}  // namespace millrace
