// The boxes of a HEIF file (ISO/IEC 14496-12 and 23008-12): which item is the picture, and what stands about it. For
// the formats that are such files (avif.h). Pure functions of the bytes, thread-safe; they allocate nothing.
//
// The time is in proportion to the file's boxes, whatever they say: no item is looked up more than a fixed number of
// times.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/formats/format.h"

namespace millrace {

// Whether it begins with "ftyp" and one of `brands` is its own, or where it says "mif1" or "msf1", is one that it is
// compatible with.
bool has_heif_brand(const ByteReader& bytes_untrusted, std::initializer_list<std::string_view> brands);

struct HeifPicture {
  std::uint32_t type = 0;   // of the primary item, as fourcc() has it
  Size size;                // as its "ispe" says
  std::uint8_t turned = 1;  // by "irot", then "imir": 1 ... 8, as EXIF has it
  bool alpha = false;
  bool deep = false;            // more than 8 bits a sample
  std::uint32_t parts = 1;      // pictures that it is put together of; 0: what says so is broken
  Size part;                    // of the first of them; of a picture that is none: as `size`
  std::uint64_t box_bytes = 0;  // of what describes items and tracks
  ByteView data;                // of the primary item, and of its alpha; empty: not in one piece, or none
  ByteView alpha_data;
  ByteView exif;  // a TIFF block; empty: none
  ByteView xmp;
};

constexpr std::uint32_t fourcc(std::string_view name) {
  std::uint32_t number = 0;
  for (const char letter : name) number = number << 8U | static_cast<std::uint8_t>(letter);
  return number;
}

// Errors: kInvalid. Metadata::kSkip: without EXIF and XMP.
Result<HeifPicture> read_heif_picture(ByteReader bytes_untrusted, Metadata metadata);

}  // namespace millrace
