#include "proto/metadata/png_metadata.h"

#include <optional>

#include "proto/metadata/exif_orientation.h"
#include "proto/metadata/inflated_text.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kPngSignature = 8;
constexpr std::size_t kPngChunkFrame = 12;  // length, type, checksum
constexpr std::string_view kXmp = "XML:com.adobe.xmp"sv, kExif = "exif"sv, kRawExif = "Raw profile type exif"sv;

struct Text {
  std::string_view keyword;
  ByteView data;
  bool compressed = false;
  bool international = false;
};

// What stands after the first zero byte; nullopt: there is none.
std::optional<ByteView> behind_zero(ByteView data) {
  const std::size_t end = ByteReader::text(data).find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return data.subspan(end + 1);
}

std::string_view keyword_of(ByteView data) {
  const std::string_view text = ByteReader::text(data);
  return text.substr(0, text.find('\0'));
}

// PNG 11.3.3.2: keyword, text.
Text plain_text(ByteView data) {
  return {keyword_of(data), behind_zero(data).value_or(ByteView{})};
}

// PNG 11.3.3.3: keyword, compression method, text.
Text compressed_text(ByteView data) {
  const ByteView rest = behind_zero(data).value_or(ByteView{});
  return {keyword_of(data), rest.empty() ? rest : rest.subspan(1), true};
}

// PNG 11.3.3.4: keyword, compression flag and method, language, translated keyword, text.
std::optional<Text> international_text(ByteView data) {
  const std::optional<ByteView> rest = behind_zero(data);
  if (!rest || rest->size() < 2) return std::nullopt;
  const bool compressed = (*rest)[0] != std::byte{0};
  if (compressed && (*rest)[1] != std::byte{0}) return std::nullopt;
  const std::optional<ByteView> translated = behind_zero(rest->subspan(2));
  const std::optional<ByteView> text = translated ? behind_zero(*translated) : std::nullopt;
  if (!text) return std::nullopt;
  return Text{keyword_of(data), *text, compressed, true};
}

// What of a file bears on its orientation, each the last of its kind.
struct Found {
  std::optional<ByteView> exif;
  std::optional<Text> raw_exif;
  std::optional<Text> xmp;
  std::optional<Text> international_xmp;

  void take(const Text& text) {
    if (text.keyword == kXmp) {
      xmp = text;
      if (text.international) international_xmp = text;
    } else if (text.keyword == kRawExif) {
      raw_exif = text;
    } else if (text.keyword == kExif && !text.compressed && !text.international) {
      exif = text.data;
    }
  }
};

// Pillow reads as far as the picture goes: after the image data of an animation, up to the next frame (APNG 1.0).
class AnimationEnd {
 public:
  bool is_here(const ByteReader& bytes, std::size_t chunk) {
    const std::size_t type = chunk + 4;
    if (bytes.holds(type, "IDAT")) {
      in_image_ = true;
    } else if (bytes.holds(type, "acTL")) {
      if (!in_image_) frames_ = frames_ == 0 ? bytes.big32(chunk + 8).value_or(0) : 0;
    } else if (bytes.holds(type, "fcTL")) {
      if (in_image_) return frames_ > 1 || (frames_ == 1 && !image_is_frame_);
      image_is_frame_ = true;
    }
    return false;
  }

 private:
  std::uint32_t frames_ = 0;
  bool in_image_ = false;
  bool image_is_frame_ = false;
};

Found find_metadata(const ByteReader& bytes) {
  Found found;
  AnimationEnd animation_end;
  std::size_t at = kPngSignature;
  while (const std::optional<std::uint32_t> length = bytes.big32(at)) {
    if (bytes.holds(at + 4, "IEND") || animation_end.is_here(bytes, at)) break;
    const ByteView data = bytes.part(at + 8, *length);
    if (data.size() < *length) break;
    if (bytes.holds(at + 4, "eXIf")) {
      found.exif = data;
    } else if (bytes.holds(at + 4, "tEXt")) {
      found.take(plain_text(data));
    } else if (bytes.holds(at + 4, "zTXt")) {
      found.take(compressed_text(data));
    } else if (bytes.holds(at + 4, "iTXt")) {
      if (const auto text = international_text(data)) found.take(*text);
    }
    at += kPngChunkFrame + *length;
  }
  return found;
}

// Calls `use` with the text's bytes. Error: those of inflating.
template <class Use>
Result<void> with_bytes_of(const Text& text, Use use) {
  if (!text.compressed) {
    use(text.data);
    return {};
  }
  MILLRACE_TRY(const InflatedText inflated, InflatedText::inflate(text.data));
  use(inflated.view());
  return {};
}

// ImageMagick's form: an empty line, the kind, the length, and lines of digits.
Result<std::optional<std::uint32_t>> raw_profile_orientation(ByteView profile) {
  std::string_view text = ByteReader::text(profile);
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return std::optional<std::uint32_t>{};
    text.remove_prefix(end + 1);
  }
  MILLRACE_TRY(const InflatedText exif, InflatedText::from_hex(profile.last(text.size())));
  return exif_orientation(exif.view());
}

Result<void> read_exif(const Found& found, StatedOrientation& stated) {
  if (found.exif) stated.exif = exif_orientation(*found.exif);
  if (found.exif || !found.raw_exif) return {};
  Result<void> result;
  MILLRACE_TRY_VOID(with_bytes_of(*found.raw_exif, [&](ByteView profile) {
    Result<std::optional<std::uint32_t>> orientation = raw_profile_orientation(profile);
    if (orientation) stated.exif = *orientation;
    if (!orientation) result = std::move(orientation).error();
  }));
  return result;
}

Result<void> read_xmp(const Found& found, StatedOrientation& stated) {
  if (!found.xmp) return {};
  bool empty = false;
  MILLRACE_TRY_VOID(with_bytes_of(*found.xmp, [&](ByteView packet) {
    empty = packet.empty();
    stated.xmp = xmp_orientation(packet);
  }));
  if (!empty || !found.international_xmp) return {};
  return with_bytes_of(*found.international_xmp, [&](ByteView packet) { stated.xmp = xmp_orientation(packet); });
}

}  // namespace

Result<StatedOrientation> read_png_metadata(const ByteReader& bytes_untrusted) {
  const Found found = find_metadata(bytes_untrusted);
  StatedOrientation stated;
  MILLRACE_TRY_VOID(read_exif(found, stated));
  if (!stated.exif) MILLRACE_TRY_VOID(read_xmp(found, stated));
  return stated;
}

}  // namespace millrace
