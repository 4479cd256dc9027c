#include "daemon/formats/jpeg.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/formats/codec_memory.h"
#include "proto/metadata/exif_orientation.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

// T.81 table B.1, second byte of the markers.
constexpr std::uint8_t kTem = 0x01, kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC, kRst0 = 0xD0, kSoi = 0xD8, kEoi = 0xD9,
                       kSos = 0xDA, kDqt = 0xDB, kApp1 = 0xE1, kApp15 = 0xEF, kCom = 0xFE;

bool is_frame(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != kDht && marker != kJpg && marker != kDac;
}

bool stands_alone(std::uint8_t marker) {
  return marker == kTem || (marker >= kRst0 && marker <= kSoi);
}

bool has_segment(std::uint8_t marker) {
  return is_frame(marker) || marker == kDht || marker == kDac || (marker >= kDqt && marker <= kApp15) || marker == kCom;
}

bool is_progressive(std::uint8_t frame) {
  return (frame & 3U) == 2;
}

struct Marker {
  std::uint8_t code;
  std::size_t end;  // position after it
};

// The next marker from `at` on, over fill bytes (T.81 B.1.1.2) and what decoders skip as junk.
std::optional<Marker> next_marker(const ByteReader& bytes, std::size_t at) {
  const std::string_view text = ByteReader::text(bytes.bytes());
  while (true) {
    at = text.find('\xFF', at);
    if (at == text.npos) return std::nullopt;
    at = text.find_first_not_of('\xFF', at);
    if (at == text.npos) return std::nullopt;
    if (text[at] != '\0') return Marker{static_cast<std::uint8_t>(text[at]), at + 1};
  }
}

// T.81 B.2.2: length, precision, lines, samples per line, components. Zero lines mean that a DNL segment gives them
// (B.2.5), which no common decoder reads.
Result<Size> read_frame(const ByteReader& bytes, std::size_t at) {
  const auto height = bytes.big16(at + 3), width = bytes.big16(at + 5);
  if (!width || !bytes.u8(at + 7)) return cut_off("the frame header");
  if (*height == 0) {
    return Error{Code::kInvalid,
                 "a JPEG whose frame header gives no height (it would come in a DNL segment, which is not supported): "
                 "save it again"};
  }
  return Size{*width, *height};
}

// The EXIF block of a file. Where several segments have a part of it, Pillow joins them, and so does this, up to 1 MiB.
class ExifBlock {
 public:
  static constexpr std::string_view kMark = "Exif\0\0"sv;

  // `segment` begins with kMark. kExhausted: no memory for joining.
  Result<void> add(ByteView segment) {
    if (!found_) {
      bytes_ = segment;
      found_ = true;
      return {};
    }
    if (!joined_) {
      joined_.reset(new (std::nothrow) std::byte[kMost]);
      if (!joined_) return Error{Code::kExhausted, "no memory is left for the EXIF segments of this image"};
      std::memcpy(joined_.get(), bytes_.data(), bytes_.size());
    }
    const ByteView part = segment.subspan(kMark.size());
    const std::size_t count = std::min(part.size(), kMost - bytes_.size());
    std::memcpy(joined_.get() + bytes_.size(), part.data(), count);
    bytes_ = {joined_.get(), bytes_.size() + count};
    return {};
  }

  std::optional<std::uint32_t> orientation() const { return found_ ? exif_orientation(bytes_) : std::nullopt; }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  bool found_ = false;
  ByteView bytes_;
  std::unique_ptr<std::byte[]> joined_;
};

struct App1 {
  ExifBlock exif;
  std::optional<std::uint32_t> xmp;

  Result<void> read(ByteView payload) {
    constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
    const ByteReader bytes(payload);
    if (bytes.holds(0, ExifBlock::kMark)) return exif.add(payload);
    if (bytes.holds(0, kXmp)) xmp = xmp_orientation(bytes.part(kXmp.size(), payload.size()));
    return {};
  }
};

// APP0 to APP15, COM, DNL.
bool is_passed_over(std::uint8_t marker) {
  return (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE || marker == 0xDC;
}

Error too_short(std::uint8_t marker, std::uint32_t length) {
  char text[96];
  std::snprintf(text, sizeof text, "a broken JPEG: segment ff %02x has a length of %u, which counts its own 2 bytes",
                marker, length);
  return Error{Code::kInvalid, text};
}

Error unexpected(std::uint8_t marker) {
  char text[96];
  std::snprintf(text, sizeof text, "a broken JPEG: marker ff %02x where the frame header should come first", marker);
  return Error{Code::kInvalid, text};
}

// --- memory ---

struct Component {
  std::uint64_t h, v;
};

// T.81 B.2.2.
std::vector<Component> components_of(const ByteReader& bytes, std::size_t frame) {
  std::vector<Component> components;
  const std::uint8_t count = bytes.u8(frame + 7).value_or(0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto sampling = bytes.u8(frame + 8 + 3 * i + 1);
    if (!sampling) break;
    components.push_back({std::max<std::uint64_t>(*sampling >> 4U, 1), std::max<std::uint64_t>(*sampling & 15U, 1)});
  }
  return components;
}

Bytes coefficients(const std::vector<Component>& components, Size size) {
  constexpr std::uint64_t kBlockBytes = 128;
  std::uint64_t most_h = 1, most_v = 1, blocks = 0;
  for (const Component& component : components) {
    most_h = std::max(most_h, component.h);
    most_v = std::max(most_v, component.v);
  }
  const std::uint64_t across = divide_up(size.width, 8 * most_h), down = divide_up(size.height, 8 * most_v);  // MCUs
  for (const Component& component : components) blocks += across * component.h * down * component.v;
  return Bytes{blocks * kBlockBytes};
}

// Of all components, if the file keeps them until its last scan: progressive ones do, and those whose first scan has
// not all components. Without image data nothing is kept: an error to every decoder.
Bytes kept_coefficients(const ByteReader& bytes, Size size) {
  std::size_t at = 2;
  std::optional<Marker> frame;
  while (const std::optional<Marker> marker = next_marker(bytes, at)) {
    at = marker->end;
    if (stands_alone(marker->code)) continue;
    if (marker->code == kEoi) break;
    if (marker->code == kSos) {
      if (!frame) break;
      const std::vector<Component> components = components_of(bytes, frame->end);
      const bool several = is_progressive(frame->code) || bytes.u8(at + 2).value_or(0) < components.size();
      return several ? coefficients(components, size) : Bytes{0};
    }
    if (is_frame(marker->code) && !frame) frame = marker;
    at += std::max(bytes.big16(at).value_or(2), 2U);
  }
  return Bytes{0};
}

}  // namespace

bool is_jpeg(const ByteReader& bytes_untrusted) {
  return bytes_untrusted.holds(0, "\xFF\xD8\xFF"sv);
}

Result<ImageHeader> read_jpeg_header(ByteReader bytes_untrusted, Metadata metadata) {
  ImageHeader header;
  App1 app1;
  bool sized = false;
  std::size_t at = 2;
  while (const std::optional<Marker> marker = next_marker(bytes_untrusted, at)) {
    at = marker->end;
    if (stands_alone(marker->code)) continue;
    if (marker->code == kSos || marker->code == kEoi || !has_segment(marker->code)) {
      if (sized) break;
      return unexpected(marker->code);
    }
    const std::optional<std::uint32_t> length = bytes_untrusted.big16(at);  // counts itself
    if (!length) break;
    if (is_frame(marker->code) && !sized) {
      MILLRACE_TRY(header.size, read_frame(bytes_untrusted, at));
      header.has = {.cmyk = bytes_untrusted.u8(at + 7) == 4, .passes = is_progressive(marker->code)};
      sized = true;
      if (metadata == Metadata::kSkip) return header;
    }
    if (*length < 2) {  // libjpeg and Pillow go on behind the length of what they do not read
      if (sized) break;
      if (!is_passed_over(marker->code)) return too_short(marker->code, *length);
      at += 2;
      continue;
    }
    const ByteView payload = bytes_untrusted.part(at + 2, *length - 2);
    if (payload.size() < *length - 2) break;
    if (marker->code == kApp1 && metadata == Metadata::kRead) MILLRACE_TRY_VOID(app1.read(payload));
    at += *length;
  }
  if (!sized) return cut_off("the frame header");
  header.exif = app1.exif.orientation();
  header.xmp = app1.xmp;
  return header;
}

bool is_plain_jpeg(ByteReader bytes_untrusted) {
  constexpr int kMostSegments = 64;
  std::size_t at = 2;
  for (int i = 0; i < kMostSegments; ++i) {
    const std::optional<std::uint32_t> mark = bytes_untrusted.big16(at), length = bytes_untrusted.big16(at + 2);
    if (!mark || !length || *mark < 0xFF00) return false;
    const auto code = static_cast<std::uint8_t>(*mark & 0xFFU);
    if (code == kSos) return true;
    if (!has_segment(code) || (is_frame(code) && is_progressive(code))) return false;
    at += 2 + *length;
  }
  return false;
}

// By their markers (B.2.3): in entropy-coded data no 0xFF is followed by 0xDA. Those of thumbnails count, too.
std::uint32_t count_jpeg_scans(ByteView bytes_untrusted) {
  constexpr std::string_view kStartOfScan("\xFF\xDA", 2);
  std::uint32_t scans = 0;
  while (!bytes_untrusted.empty() && scans < Format::kMostPasses) {
    const void* const found =
        ::memmem(bytes_untrusted.data(), bytes_untrusted.size(), kStartOfScan.data(), kStartOfScan.size());
    if (found == nullptr) break;
    const auto* const behind = static_cast<const std::byte*>(found) + kStartOfScan.size();
    bytes_untrusted = bytes_untrusted.subspan(static_cast<std::size_t>(behind - bytes_untrusted.data()));
    ++scans;
  }
  return std::max(scans, 1U);
}

CodecMemory jpeg_codec_memory(Size size, ByteReader bytes_untrusted) {
  const Bytes scan{2 * std::uint64_t{bytes_untrusted.size()}};  // without its stuffing; restart intervals once more
  const Bytes rows{std::uint64_t{size.width} * 256};
  const Bytes memory = kCodecFixed + rows + scan + kept_coefficients(bytes_untrusted, size);
  return {memory, memory};
}

}  // namespace millrace
