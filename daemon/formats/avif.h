// AVIF: a HEIF file (heif_boxes.h) whose picture is AV1.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_avif(const ByteReader& bytes_untrusted);

// The primary item's; of an animation too, which has the first picture there. The orientation is "irot" and "imir", as
// libavif and Pillow have it: EXIF's counts for nothing, and XMP's where there is neither.
Result<ImageHeader> read_avif_header(ByteReader bytes_untrusted, Metadata metadata);

// The planes of the picture and its alpha as dav1d holds them, those of a grid's parts beside the whole, what it takes
// for each, and the boxes. At the most as many pictures as the data's frames may have it keep.
CodecMemory avif_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 2> kAvifExtensions{"avif", "avifs"};

// All of the picture is decoded, whatever the crop; the crop is what is made RGB.
inline constexpr Format kAvifFormat{
    .format = ImageFormat::kAvif,
    .name = "avif",
    .title = "AVIF",
    .extensions = kAvifExtensions,
    .features = {.alpha = true, .deep = true, .animation = true},
    .cost = {.picture_ns = 150'000, .byte_ns = 65, .pixel_ps = 8'000, .crop_pixel_ps = 6'000},
    .recognises = is_avif,
    .read_header = read_avif_header,
    .codec_memory = avif_codec_memory,
};

}  // namespace millrace
