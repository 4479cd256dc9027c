// PNG: W3C PNG (third edition), 5 and 11.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_png(const ByteReader& bytes_untrusted);

// The size is IHDR's. Orientation is looked for in all chunks, for they may follow the image data.
Result<ImageHeader> read_png_header(ByteReader bytes_untrusted, Metadata metadata);

// Rows.
CodecMemory png_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kPngExtensions{"png"};

// The cost is fitted to a thread's processor time for RandomResizedCrop to 224x224 of photographs and screenshots. All
// rows are decoded, whatever the crop.
inline constexpr Format kPngFormat{
    .format = ImageFormat::kPng,
    .name = "png",
    .title = "PNG",
    .extensions = kPngExtensions,
    .features = {.alpha = true, .deep = true, .passes = true, .animation = true},
    .cost = {.picture_ns = 190'000, .byte_ns = 6, .pixel_ps = 2'200},
    .recognises = is_png,
    .read_header = read_png_header,
    .codec_memory = png_codec_memory,
};

}  // namespace millrace
