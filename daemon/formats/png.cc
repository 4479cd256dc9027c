#include "daemon/formats/png.h"

#include "daemon/formats/codec_memory.h"
#include "proto/metadata/png_metadata.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSignature = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type, checksum

// Where the data of the IHDR chunk begins. It should come first and have 13 bytes (PNG 5.6 and 11.2.1); Pillow takes it
// from anywhere before the image data, and leaves aside what it has beyond them.
Result<std::size_t> find_header(const ByteReader& bytes) {
  std::size_t at = kSignature;
  while (const std::optional<std::uint32_t> length = bytes.big32(at)) {
    if (bytes.holds(at + 4, "IDAT") || bytes.holds(at + 4, "IEND"))
      return Error{Code::kInvalid, "a broken PNG: it has no IHDR chunk before its image data"};
    if (bytes.holds(at + 4, "IHDR")) {
      if (*length < 13) return Error{Code::kInvalid, "a broken PNG: its IHDR chunk is too short"};
      return at + 8;
    }
    at += kChunkFrame + *length;
  }
  return cut_off("the IHDR chunk");
}

// PNG 11.2.1: bit depth, colour type (4: alpha) and interlace follow the size. 11.3.1.1, and APNG's acTL: chunks before
// the image data.
ImageFeatures read_features(const ByteReader& bytes, std::size_t header) {
  ImageFeatures has{.alpha = (bytes.u8(header + 9).value_or(0) & 4U) != 0,
                    .deep = bytes.u8(header + 8) == 16,
                    .passes = bytes.u8(header + 12).value_or(0) != 0};
  std::size_t at = kSignature;
  while (const std::optional<std::uint32_t> length = bytes.big32(at)) {
    if (bytes.holds(at + 4, "IDAT") || bytes.holds(at + 4, "IEND")) break;
    has.alpha = has.alpha || bytes.holds(at + 4, "tRNS");
    has.animation = has.animation || bytes.holds(at + 4, "acTL");
    at += kChunkFrame + std::size_t{*length};
  }
  return has;
}

}  // namespace

bool is_png(const ByteReader& bytes_untrusted) {
  return bytes_untrusted.holds(0, "\x89PNG\r\n\x1A\n"sv);
}

Result<ImageHeader> read_png_header(ByteReader bytes_untrusted, Metadata metadata) {
  MILLRACE_TRY(const std::size_t data, find_header(bytes_untrusted));
  const auto width = bytes_untrusted.big32(data), height = bytes_untrusted.big32(data + 4);
  if (!height || !bytes_untrusted.u8(data + 12)) return cut_off("the IHDR chunk");
  ImageHeader header{.size = {*width, *height}, .has = read_features(bytes_untrusted, data)};
  if (metadata == Metadata::kRead) {
    MILLRACE_TRY(const StatedOrientation stated, read_png_metadata(bytes_untrusted));
    header.exif = stated.exif;
    header.xmp = stated.xmp;
  }
  return header;
}

CodecMemory png_codec_memory(Size size, ByteReader) {
  const Bytes memory = kCodecFixed + Bytes{std::uint64_t{size.width} * 32};
  return {memory, memory};
}

}  // namespace millrace
