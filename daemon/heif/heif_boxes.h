// The boxes of a HEIF file (ISO/IEC 14496-12 and 23008-12): which item is the picture, and what stands about it. For
// the formats that are such files (avif.h). Pure functions of the bytes, thread-safe; they allocate nothing.
//
// The time is in proportion to the file's boxes, whatever they say: no item is looked up more than a fixed number of
// times.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "daemon/model/bytes/encoded_image.h"
#include "proto/base/byte_reader.h"
#include "proto/base/result.h"

namespace millrace {

// Whether it begins with "ftyp" and one of `brands` is its own, or where it says "mif1" or "msf1", is one that it is
// compatible with.
bool has_heif_brand(const ByteReader& bytes_untrusted, std::initializer_list<std::string_view> brands);

struct HeifPicture {
  std::uint32_t type = 0;   // of the primary item, as fourcc() has it
  Size size;                // as its "ispe" says
  std::uint8_t turned = 1;  // by "irot", then "imir": 1 ... 8, as EXIF has it
  bool alpha = false;
  bool deep = false;                 // more than 8 bits a sample
  std::uint32_t parts = 1;           // pictures that it is put together of; 0: what says so is broken
  Size part;                         // of the first of them; of a picture that is none: as `size`
  std::uint64_t box_bytes = 0;       // of what describes items and tracks
  bool description_is_open = false;  // the length of what describes items is not said: it goes to the file's end
  ByteView data;                     // of the primary item, and of its alpha; empty: not in one piece, or none
  ByteView alpha_data;
  ByteView exif;  // a TIFF block; empty: none
  ByteView xmp;
};

// What a decoder of an item has to know of it.
struct HeifItem {
  std::uint32_t type = 0;
  Size size;                // as its "ispe" says; 0: it has none
  ByteView data;            // empty: none, or not in one piece
  ByteView configuration;   // "hvcC"
  std::optional<Box> crop;  // of "clap", in whole pixels, inside `size`
  std::uint8_t turned = 1;  // by "irot" and "imir" in the file's order
  // Whether libheif makes 4:2:0, and 4:2:2, 4:4:4 before it turns planes, which cannot be turned as they are.
  bool is_smoothed_420 = false, is_smoothed_422 = false;
  bool has_other_crop = false;  // "clap" that is none of these, or after it was turned
  struct Colours {              // "colr" of type "nclx"
    std::uint32_t matrix = 2;
    bool is_full_range = true;
  };
  std::optional<Colours> colours;
};

struct HeifGrid {
  std::uint32_t columns = 1, rows = 1;
  Size size;
};
// Of the data of an item of the type "grid"; nullopt: broken.
std::optional<HeifGrid> read_heif_grid(ByteView data_untrusted);

// The items of a file, one at a time. View of the bytes.
class HeifItems {
 public:
  // Errors: kInvalid, without the format's name.
  static Result<HeifItems> open(ByteReader bytes_untrusted);

  std::uint32_t primary() const { return primary_; }
  HeifItem item(std::uint32_t id) const;
  // Of a grid, in its order; nullopt: there are fewer.
  std::optional<std::uint32_t> part(std::uint32_t grid, std::uint32_t number) const;
  // Whether the picture's colours were multiplied by its alpha.
  bool is_premultiplied() const;

 private:
  HeifItems(ByteReader file, ByteReader meta, std::uint32_t primary) : file_(file), meta_(meta), primary_(primary) {}

  ByteReader file_, meta_;
  std::uint32_t primary_;
};

constexpr std::uint32_t fourcc(std::string_view name) {
  std::uint32_t number = 0;
  for (const char letter : name) number = number << 8U | static_cast<std::uint8_t>(letter);
  return number;
}

// Whether the items of its grid, and of its alpha's, ascend in the grid's order, as many as it has, and are part of nothing
// else; true of a picture that is no grid.
bool heif_parts_ascend(ByteReader bytes_untrusted);

enum class HeifMetadata { kSkip, kRead };  // EXIF and XMP

// Errors: kInvalid, or kUnsupported for an animation that has no picture beside its track; without the format's name.
Result<HeifPicture> read_heif_picture(ByteReader bytes_untrusted, HeifMetadata metadata);

}  // namespace millrace
