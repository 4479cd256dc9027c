#include "daemon/formats/webp.h"

#include <algorithm>
#include <optional>

#include "daemon/formats/codec_memory.h"
#include "proto/metadata/exif_orientation.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kFirstChunk = 12;  // after "RIFF", size, "WEBP"
constexpr std::size_t kChunkHeader = 8;
// RFC 9649, 2.7.1
constexpr std::uint8_t kAnimationFlag = 0x02, kXmpFlag = 0x04, kExifFlag = 0x08, kAlphaFlag = 0x10;

// RFC 6386, 9.1: frame tag, start code, two times 14 bits of size and 2 of scale.
Result<Size> read_lossy(const ByteReader& data) {
  const auto tag = data.little24(0), width = data.little16(6), height = data.little16(8);
  if (!height) return cut_off("the frame header");
  if ((*tag & 1U) != 0 || !data.holds(3, "\x9D\x01\x2A"sv))
    return Error{Code::kInvalid, "a broken WebP: no VP8 key frame where it should begin"};
  return Size{*width & 0x3FFFU, *height & 0x3FFFU};
}

// RFC 9649, 3.4: signature, 14 bits each of width - 1 and height - 1; after them, whether there is alpha.
Result<Size> read_lossless(const ByteReader& data) {
  const auto bits = data.little32(1);
  if (!bits) return cut_off("the frame header");
  if (!data.holds(0, "\x2F"sv)) return Error{Code::kInvalid, "a broken WebP: no VP8L signature where it should be"};
  return Size{(*bits & 0x3FFFU) + 1, (*bits >> 14U & 0x3FFFU) + 1};
}

// RFC 9649, 2.7.1: flags, 3 reserved bytes, 24 bits each of canvas width - 1 and height - 1.
Result<Size> read_extended(const ByteReader& data) {
  const auto width = data.little24(4), height = data.little24(7);
  if (!height) return cut_off("the canvas size");
  return Size{*width + 1, *height + 1};
}

// The first chunk of each kind counts, and only if the flags announce it, as libwebp's demuxer has it.
void read_metadata(const ByteReader& bytes, std::uint8_t flags, ImageHeader& header) {
  bool exif = (flags & kExifFlag) != 0, xmp = (flags & kXmpFlag) != 0;
  std::size_t at = kFirstChunk;
  while (const std::optional<std::uint32_t> length = bytes.little32(at + 4)) {
    const ByteView data = bytes.part(at + kChunkHeader, *length);
    if (data.size() < *length || !(exif || xmp)) return;
    if (exif && bytes.holds(at, "EXIF")) {
      header.exif = exif_orientation(data);
      exif = false;
    } else if (xmp && bytes.holds(at, "XMP ")) {
      header.xmp = xmp_orientation(data);
      xmp = false;
    }
    at += kChunkHeader + *length + (*length & 1U);  // RFC 9649, 2.3: padded to even
  }
}

// --- memory ---

// RFC 9649, 2.7: a lossy picture with neither alpha nor frames before it.
bool is_plain_lossy(const ByteReader& bytes) {
  std::size_t at = kFirstChunk;
  while (const std::optional<std::uint32_t> length = bytes.little32(at + 4)) {
    if (bytes.holds(at, "VP8 ")) return true;
    if (bytes.holds(at, "VP8L") || bytes.holds(at, "ALPH") || bytes.holds(at, "ANMF")) return false;
    at += kChunkHeader + std::size_t{*length} + (*length & 1U);
  }
  return false;
}

}  // namespace

bool is_webp(const ByteReader& bytes_untrusted) {
  return bytes_untrusted.holds(0, "RIFF"sv) && bytes_untrusted.holds(8, "WEBP"sv);
}

Result<ImageHeader> read_webp_header(ByteReader bytes_untrusted, Metadata metadata) {
  const ByteReader data(bytes_untrusted.part(kFirstChunk + kChunkHeader, bytes_untrusted.size()));
  ImageHeader header;
  if (bytes_untrusted.size() < kFirstChunk + kChunkHeader) return cut_off("the first chunk");
  if (bytes_untrusted.holds(kFirstChunk, "VP8 ")) {
    MILLRACE_TRY(header.size, read_lossy(data));
  } else if (bytes_untrusted.holds(kFirstChunk, "VP8L")) {
    MILLRACE_TRY(header.size, read_lossless(data));
    header.has.alpha = (*data.little32(1) >> 28U & 1U) != 0;
  } else if (bytes_untrusted.holds(kFirstChunk, "VP8X")) {
    MILLRACE_TRY(header.size, read_extended(data));
    const std::uint8_t flags = *data.u8(0);
    header.has = {.alpha = (flags & kAlphaFlag) != 0, .animation = (flags & kAnimationFlag) != 0};
    if (metadata == Metadata::kRead) read_metadata(bytes_untrusted, flags, header);
  } else {
    return Error{Code::kInvalid, "a broken WebP: its first chunk is none of VP8, VP8L and VP8X"};
  }
  return header;
}

CodecMemory webp_codec_memory(Size size, ByteReader bytes_untrusted) {
  const Bytes rows{std::uint64_t{size.width} * 256};
  if (is_plain_lossy(bytes_untrusted)) return {kCodecFixed + rows, kCodecFixed + rows};
  constexpr std::uint64_t kPixelBytes = 6, kGroupBytes = 20'600, kMostGroups = 65'536, kGroupBits = 20;
  const Bytes needed = kCodecFixed + rows + Bytes{std::uint64_t{size.width} * size.height * kPixelBytes};
  const std::uint64_t tiles = divide_up(size.width, 4) * divide_up(size.height, 4);
  const std::uint64_t groups = std::min({kMostGroups, tiles, std::uint64_t{bytes_untrusted.size()} * 8 / kGroupBits});
  return {needed, needed + Bytes{groups * kGroupBytes}};
}

}  // namespace millrace
