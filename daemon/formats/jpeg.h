// JPEG: ITU-T T.81 (markers: Annex B), EXIF in APP1.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_jpeg(const ByteReader& bytes_untrusted);

// The size is the first frame header's; orientation is looked for up to the first scan.
Result<ImageHeader> read_jpeg_header(ByteReader bytes_untrusted, Metadata metadata);

// Rows; in files of several scans all coefficients: 128 bytes a block of every component, padded to whole MCUs.
CodecMemory jpeg_codec_memory(Size size, ByteReader bytes_untrusted);

// One scan, and few segments before it, as cameras and encoders write them.
bool is_plain_jpeg(ByteReader bytes_untrusted);

// A scan may have a few bytes and go over all blocks: what a progressive file costs its bytes do not tell.
std::uint32_t count_jpeg_scans(ByteView bytes_untrusted);

inline constexpr std::array<std::string_view, 2> kJpegExtensions{"jpg", "jpeg"};

// The cost need only put images in the right order. One figure serves for files with a seek index and without; nobody
// looks whether there is one.
inline constexpr Format kJpegFormat{
    .format = ImageFormat::kJpeg,
    .name = "jpeg",
    .title = "JPEG",
    .extensions = kJpegExtensions,
    .features = {.cmyk = true, .passes = true},
    .cost = {.picture_ns = 50'000,
             .byte_ns = 3,
             .part = DecodingCost::Part::kToCropEnd,
             .crop_pixel_ps = 1'500,
             .pass_pixel_ps = 150},
    .recognises = is_jpeg,
    .read_header = read_jpeg_header,
    .codec_memory = jpeg_codec_memory,
    .count_passes = count_jpeg_scans,
    .is_read_quickly = is_plain_jpeg,
};

}  // namespace millrace
