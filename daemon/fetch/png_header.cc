#include "daemon/fetch/header.h"
#include "daemon/fetch/orientation.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSignature = 8;
constexpr std::size_t kChunkFrame = 12;  // length, type, checksum

// PNG 11.3.3.4: keyword, compression flag and method, language, translated keyword, text. Compressed packets are not
// looked into.
std::optional<std::uint32_t> itxt_orientation(ByteView data) {
  constexpr std::string_view kUncompressedXmp = "XML:com.adobe.xmp\0\0"sv;
  std::string_view text = ByteReader::text(data);
  if (!text.starts_with(kUncompressedXmp)) return std::nullopt;
  std::size_t at = kUncompressedXmp.size() + 1;
  for (int field = 0; field < 2; ++field) {
    const std::size_t end = text.find('\0', at);
    if (end == text.npos) return std::nullopt;
    at = end + 1;
  }
  return xmp_orientation(data.subspan(at));
}

void read_metadata(const ByteReader& bytes, ImageHeader& header) {
  std::size_t at = kSignature;
  while (const std::optional<std::uint32_t> length = bytes.big32(at)) {
    if (bytes.holds(at + 4, "IEND")) return;
    const ByteView data = bytes.part(at + 8, *length);
    if (data.size() < *length) return;
    if (bytes.holds(at + 4, "eXIf")) header.exif = exif_orientation(data);
    if (bytes.holds(at + 4, "iTXt")) {
      if (const auto orientation = itxt_orientation(data)) header.xmp = orientation;
    }
    at += kChunkFrame + *length;
  }
}

}  // namespace

Result<ImageHeader> read_png_header(ByteReader bytes_untrusted, Metadata metadata) {
  // PNG 5.6 and 11.2.1: IHDR comes first and has 13 bytes of data.
  const auto length = bytes_untrusted.big32(kSignature), width = bytes_untrusted.big32(kSignature + 8),
             height = bytes_untrusted.big32(kSignature + 12);
  if (!height || !bytes_untrusted.u8(kSignature + 8 + 12)) return cut_off("the IHDR chunk");
  if (*length != 13 || !bytes_untrusted.holds(kSignature + 4, "IHDR"))
    return Error{Code::kInvalid, "a broken PNG: its first chunk is not IHDR"};
  ImageHeader header{.size = {*width, *height}};
  if (metadata == Metadata::kRead) read_metadata(bytes_untrusted, header);
  return header;
}

}  // namespace millrace
