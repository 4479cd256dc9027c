// What the daemon knows of one image format: a row of format_table.h, which the format's own file fills in (jpeg.h,
// png.h, webp.h).
//
// Decoding is not here. Each backend decodes in its own way, on its own device, and says of each sample whether it can
// (Backend::can_make()).
//
// Values, and pure functions of the bytes: Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/model/bytes/encoded_image.h"
#include "proto/base/byte_reader.h"
#include "proto/base/result.h"

namespace millrace {

struct ImageHeader {
  Size size;
  ImageFeatures has{};
  std::optional<std::uint32_t> exif;  // orientation as it stands in the file, any number
  std::optional<std::uint32_t> xmp;
};

enum class Metadata { kSkip, kRead };

// What decoding costs a lane, in nanoseconds of one processor that it was measured on: good for comparing, not for
// predicting. place/expected_cost.h adds it up.
struct DecodingCost {
  enum class Part { kAll, kToCropEnd };  // of the file: kToCropEnd when decoding stops at the crop's last row

  std::uint64_t picture_ns = 0;  // for any picture
  std::uint64_t byte_ns = 0;     // for each byte of the file's part
  Part part = Part::kAll;
  std::uint64_t pixel_ps = 0;       // picoseconds for each pixel of the picture
  std::uint64_t crop_pixel_ps = 0;  // for each pixel of the crop
  std::uint64_t pass_pixel_ps = 0;  // for each pixel of the picture and each pass, where there are several
};

struct Format {
  ImageFormat format;
  std::string_view name;                         // as Devices.List tells it: "jpeg"
  std::string_view title;                        // in sentences for people: "JPEG"
  std::span<const std::string_view> extensions;  // what names of its files end with: lower case, without the dot
  ImageFeatures features;  // what its files may have; all of it is decoded. What a file has: SourceInfo.has
  DecodingCost cost;

  // Whether the bytes begin with the format's signature.
  bool (*recognises)(const ByteReader& bytes_untrusted);

  // Reads the header of bytes that it recognises and fills in what it finds. What is wrong after the size has been
  // found is no error here; the decoder reports it. Errors: kInvalid; kExhausted, no memory for metadata that is in
  // pieces or compressed.
  Result<ImageHeader> (*read_header)(ByteReader bytes_untrusted, Metadata metadata);

  // What decoding takes beside the pixels, from the bytes in front of the image data. Of an image whose header is good
  // and says `size`. Never too little for the libraries that decode here.
  CodecMemory (*codec_memory)(Size size, ByteReader bytes_untrusted);

  // How many passes the whole file has that says it has several; never too few, and kMostPasses at most. Null: what they
  // cost is in its bytes and pixels.
  std::uint32_t (*count_passes)(ByteView bytes_untrusted) = nullptr;

  // Whether all that is looked at in such bytes takes microseconds, and few: it looks at no more than a few hundred itself.
  // Null: that cannot be said so easily, and they take as long as they take.
  bool (*is_read_quickly)(ByteReader bytes_untrusted) = nullptr;

  static constexpr std::uint32_t kMostPasses = 1'000;
};

// The error of a file that ends before its size is known; `what` is missing, "the frame header".
inline Error cut_off(const char* what) {
  return Error{Code::kInvalid, std::string("cut off: the file ends before ") + what};
}

}  // namespace millrace
