// A picture in L3 version 2: bytes, whose format README.md gives as a grammar. encode() (encoder.h) makes them, a Decoder
// (decoder.h) turns boxes of them into pixels. Any tile can be had without another.
//
// The bytes are hostile: they may come from a damaged disk, or from somebody who made them up, with whatever checksums.
// Whatever read() takes, decoding any box of it reads no byte outside the image's and kPadding behind them. What they say
// may still be anything. Thread-safe: values, and plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/image_view.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {

inline constexpr std::size_t kPadding =
    64;  // bytes behind an image that must be readable; what they are changes nothing
inline constexpr std::size_t kHeadBytes = 64;
inline constexpr std::uint32_t kMostSide = 1U << 20U;
inline constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 31U;
inline constexpr std::uint32_t kMostExtraBytes = 1U << 24U;  // of EXIF, of ICC, of XMP
inline constexpr int kMostColours = 256;

struct Head {
  int channels = 0;      // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  int depth = 0;         // bits of a sample: 8 or 16
  int orientation = 1;   // 1 ... 8, as EXIF has it
  Size size;             // as stored
  int colours = 0;       // 1 ... kMostColours: samples are numbers of colours. 0: there is no palette
  int colour_bytes = 0;  // 3 or 4 with a palette
  std::uint32_t exif_bytes = 0, icc_bytes = 0, xmp_bytes = 0;
  std::uint64_t data_bytes = 0;  // of all tiles

  int bytes() const { return depth / 8; }  // of a sample
  int across() const { return (size.width + kTileSide - 1) / kTileSide; }
  int down() const { return (size.height + kTileSide - 1) / kTileSide; }
  std::size_t tiles() const { return static_cast<std::size_t>(across()) * static_cast<std::size_t>(down()); }
  // Where parts begin in the file.
  std::size_t icc_at() const { return kHeadBytes + exif_bytes; }
  std::size_t xmp_at() const { return icc_at() + icc_bytes; }
  std::size_t palette_at() const { return xmp_at() + xmp_bytes; }
  std::size_t palette_bytes() const {
    return static_cast<std::size_t>(colours) * static_cast<std::size_t>(colour_bytes);
  }
  std::size_t offsets_at() const;
  std::size_t data_at() const { return offsets_at() + (tiles() + 1) * sizeof(std::uint32_t); }

  friend bool operator==(const Head&, const Head&) = default;
};

enum class Check : std::uint8_t {
  kChecksums,
  kShape,  // the checksums were compared before, and the bytes have been in our own memory since
};

// The first bytes of a file tell it.
bool is_l3(FileBytes file_untrusted);

// The head and the offsets, and with Check::kChecksums the checksum of all that stands before the first tile. Empty: fine.
// Otherwise what is wrong, for a sentence ("cut off"); `head` means nothing then. Tiles are not looked at, and may be
// missing.
std::string read_head(FileBytes file_untrusted, Check check, Head& head);

// Borrows the bytes. Value.
class Image {
 public:
  // Empty: fine. Otherwise what is wrong, for a sentence. Costs a look at the offsets, and with Check::kChecksums at every
  // byte. Decoding REQUIRES kPadding readable bytes behind `file_untrusted`.
  std::string read(FileBytes file_untrusted, Check check);

  const Head& head() const { return head_; }
  FileBytes exif() const { return file_.subspan(kHeadBytes, head_.exif_bytes); }
  FileBytes icc() const { return file_.subspan(head_.icc_at(), head_.icc_bytes); }
  FileBytes xmp() const { return file_.subspan(head_.xmp_at(), head_.xmp_bytes); }
  // head().colours times head().colour_bytes: red, green, blue, and alpha with 4.
  FileBytes palette() const { return file_.subspan(head_.palette_at(), head_.palette_bytes()); }

  // Row by row. REQUIRES: index < head().tiles().
  FileBytes tile(std::size_t index) const;
  TileShape tile_shape(std::size_t index) const;

 private:
  Head head_;
  FileBytes file_;
};

}  // namespace millrace::kernels::l3
