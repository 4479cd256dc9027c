// L3: lossless pictures in tiles (kernels/l3), as `millrace convert --to l3` makes them.
#pragma once

#include <array>

#include "daemon/formats/format.h"

namespace millrace {

// Of both versions.
bool is_l3(const ByteReader& bytes_untrusted);

// Of version 1 the size. Of version 2 the head's size and orientation; what EXIF and XMP say besides does not count. The checksum of all that stands before
// the tiles is compared; the tiles' own is the decoder's affair.
Result<ImageHeader> read_l3_header(ByteReader bytes_untrusted, Metadata metadata);

// A tile at a time; of version 1 where each patch ends.
CodecMemory l3_codec_memory(Size size, ByteReader bytes_untrusted);

inline constexpr std::array<std::string_view, 1> kL3Extensions{"l3"};

// All bytes are looked at for their checksum, and tiles that the crop meets are decoded.
inline constexpr Format kL3Format{
    .format = ImageFormat::kL3,
    .name = "l3",
    .title = "L3",
    .extensions = kL3Extensions,
    .features = {.alpha = true, .deep = true},
    .cost = {.picture_ns = 10'000, .crop_pixel_ps = 1'500},
    .recognises = is_l3,
    .read_header = read_l3_header,
    .codec_memory = l3_codec_memory,
};

}  // namespace millrace
