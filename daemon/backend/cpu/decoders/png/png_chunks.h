// The chunks of a PNG file, walked in order with Pillow's verdict on each, and the pieces of its image data. What stays
// of a file is a fixed 1 KiB, however many chunks it has. Thread-bound(its owner). Views the file's bytes.
//
//   PngChunks::open(bytes)      up to the image data: header and palette are known
//   next_image_data()           until all rows are there, or the data has ended
//   check_rest()                what follows them
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

enum class PngColour : std::uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

struct PngHeader {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint8_t bit_depth = 0;
  PngColour colour = PngColour::kGrey;
  bool interlaced = false;
};

unsigned bits_per_pixel(const PngHeader& header);

class PngChunks {
 public:
  // Pieces of the image data are those that Pillow reads: of one chunk, at most so many bytes. The verdict on what
  // follows the last row depends on them.
  static constexpr std::size_t kPiece = 64 << 10;

  // kInvalid: no PNG, a wrong checksum before the image data, a chunk that does not fit in or contradicts itself, no
  // image data.
  static Result<PngChunks> open(ByteView bytes_untrusted);

  const PngHeader& header() const { return *header_; }
  // 256 entries of red, green, blue; those that the file does not have are black.
  const std::array<std::uint8_t, 768>& palette() const { return palette_; }

  // Empty at the end: of the file, or because another chunk follows.
  ByteView next_image_data();
  // Whether the chunk around what was handed out last ends within the file.
  bool has_whole_image_data() const { return chunk_end_ <= bytes_.size(); }

  // The rest of the chunk whose data was handed out last, and the chunks behind it, whose checksums do not count.
  // kInvalid: one of them is cut off or contradicts itself. Bytes that are no chunk end the walk, as IEND does.
  Result<void> check_rest();

 private:
  struct Chunk {
    std::string_view type;
    std::size_t begin;   // of the data
    std::size_t length;  // as the file says; may lead beyond its end
  };

  explicit PngChunks(ByteView bytes) : bytes_(bytes) {}

  std::optional<Chunk> chunk_at(std::size_t at) const;
  bool is_whole(const Chunk& chunk) const;
  bool has_right_checksum(const Chunk& chunk) const;
  void begin_image_data(const Chunk& first);
  Result<void> walk_to_image_data();
  Result<void> check(const Chunk& chunk);
  Result<void> check_header(ByteView data);
  Result<void> check_transparency(ByteView data) const;
  Result<void> check_frame_control(ByteView data);
  Result<void> check_frame_data(ByteView data);
  Result<void> check_sequence(std::uint32_t number);
  void note_palette(ByteView data);
  void note_animation(ByteView data);

  ByteView bytes_;
  std::optional<PngHeader> header_;
  std::array<std::uint8_t, 768> palette_{};
  bool palette_fits_ = true;
  bool in_image_ = false;
  // Of an animated PNG (APNG 1.0): how many frames acTL promises, the last sequence number, whether fcTL came first.
  std::optional<std::uint32_t> frames_;
  std::optional<std::uint32_t> sequence_;
  bool image_is_frame_ = false;
  bool animated_ = false;
  std::size_t at_ = 0;         // the next chunk; in the image data: the next byte of it
  std::size_t chunk_end_ = 0;  // where the data of the chunk around at_ ends, may be beyond the file
};

}  // namespace millrace
