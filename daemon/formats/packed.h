// MRP: packed coefficients of a JPEG file as a file of their own (kernels/mrp), as `millrace convert` makes them.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

bool is_packed(const ByteReader& bytes_untrusted);

// Size and orientation are those of the JPEG header in it. The checksum of all but the packed image is compared; the
// image's own is its decoder's affair.
Result<ImageHeader> read_packed_header(ByteReader bytes_untrusted, Metadata metadata);

// Rows, and where the groups of blocks are.
CodecMemory packed_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kPackedExtensions{"mrp"};

// Only groups of blocks that the crop meets are looked at. A file of many passes has them no more.
inline constexpr Format kPackedFormat{
    .format = ImageFormat::kPacked,
    .name = "mrp",
    .title = "MRP",
    .extensions = kPackedExtensions,
    .features = {},
    .cost = {.picture_ns = 30'000, .crop_pixel_ps = 1'500},
    .recognises = is_packed,
    .read_header = read_packed_header,
    .codec_memory = packed_codec_memory,
};

}  // namespace millrace
