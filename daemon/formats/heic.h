// HEIC: a HEIF file (heif_boxes.h) whose picture is HEVC.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_heic(const ByteReader& bytes_untrusted);

// The primary item's, as its "clap" cuts it out. The orientation is "irot" and "imir" in the file's order, as libheif
// and pillow-heif have it; EXIF's and XMP's count for nothing.
Result<ImageHeader> read_heic_header(ByteReader bytes_untrusted, Metadata metadata);

// The planes of a picture as libde265 holds them, or of one part of a grid, and what it notes of blocks. At the most as
// many pictures as the data has.
CodecMemory heic_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 2> kHeicExtensions{"heic", "heif"};

// All of the picture is decoded, whatever the crop; the crop is what is made RGB.
inline constexpr Format kHeicFormat{
    .format = ImageFormat::kHeic,
    .name = "heic",
    .title = "HEIC",
    .extensions = kHeicExtensions,
    .features = {.alpha = true, .deep = true},
    .cost = {.picture_ns = 100'000, .byte_ns = 200, .pixel_ps = 40'000, .crop_pixel_ps = 10'000},
    .recognises = is_heic,
    .read_header = read_heic_header,
    .codec_memory = heic_codec_memory,
};

}  // namespace millrace
