// What decoding will take beside the pixels, from the bytes in front of the image data. Pure function, thread-safe.
#pragma once

#include "daemon/formats/byte_reader.h"
#include "daemon/model/encoded_image.h"

namespace millrace {

// Of an image whose header is good and says `size`. Never too little for the libraries that decode here:
//
//   JPEG  rows; in files of several scans all coefficients: 128 bytes a block of every component, padded to whole MCUs
//   PNG   rows
//   WebP  plain lossy: rows. Others, whose picture or alpha is lossless: six bytes a pixel, and at the most the tables
//         of as many groups of codes as the file has bits and the picture has tiles for (RFC 9649, 3.7.2)
CodecMemory codec_memory(ImageFormat format, Size size, ByteReader bytes_untrusted);

}  // namespace millrace
