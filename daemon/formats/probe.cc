#include "daemon/formats/probe.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "daemon/formats/codec_memory.h"
#include "daemon/formats/header.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

bool is_jpeg(const ByteReader& bytes) {
  return bytes.holds(0, "\xFF\xD8\xFF"sv);
}
bool is_png(const ByteReader& bytes) {
  return bytes.holds(0, "\x89PNG\r\n\x1A\n"sv);
}
bool is_webp(const ByteReader& bytes) {
  return bytes.holds(0, "RIFF"sv) && bytes.holds(8, "WEBP"sv);
}

struct FormatRow {
  ImageFormat format;
  const char* name;
  bool (*sniff)(const ByteReader& bytes);
  Result<ImageHeader> (*read)(ByteReader bytes_untrusted, Metadata metadata);
};

constexpr FormatRow kFormats[] = {
    {ImageFormat::kJpeg, "JPEG", is_jpeg, read_jpeg_header},
    {ImageFormat::kPng, "PNG", is_png, read_png_header},
    {ImageFormat::kWebp, "WebP", is_webp, read_webp_header},
};

Error unknown_format(ByteView bytes) {
  std::string text = "not an image that this daemon knows (";
  for (const FormatRow& row : kFormats) text += (&row == kFormats ? "" : ", ") + std::string(row.name);
  text += "); it begins with";
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    char hex[8];
    std::snprintf(hex, sizeof hex, " %02x", std::to_integer<unsigned>(byte));
    text += hex;
  }
  return Error{Code::kInvalid, std::move(text)};
}

Result<void> check_size(Size size, const SampleLimits& limits) {
  const std::string shape = std::to_string(size.width) + "x" + std::to_string(size.height);
  if (size.width == 0 || size.height == 0)
    return Error{Code::kInvalid, "its header says " + shape + " pixels: there is nothing to decode"};
  if (size.width > limits.side || size.height > limits.side)
    return Error{Code::kInvalid,
                 shape + " pixels are over the limit of " + std::to_string(limits.side) + " a side (limits.side)"};
  if (std::uint64_t{size.width} * size.height > limits.pixels)
    return Error{Code::kInvalid,
                 shape + " pixels are over the limit of " + std::to_string(limits.pixels) + " (limits.pixels)"};
  return {};
}

std::uint8_t orientation_of(const ImageHeader& header) {
  const std::uint32_t found = header.exif ? *header.exif : header.xmp.value_or(1);
  return found >= 1 && found <= 8 ? static_cast<std::uint8_t>(found) : std::uint8_t{1};
}

}  // namespace

Error cut_off(const char* what) {
  return Error{Code::kInvalid, std::string("cut off: the file ends before ") + what};
}

Result<SourceInfo> probe_image(ByteView bytes_untrusted, const SampleLimits& limits, UseOrientation use) {
  if (bytes_untrusted.empty()) return Error{Code::kInvalid, "an empty file"};
  const ByteReader bytes(bytes_untrusted);
  const auto* const row =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const FormatRow& f) { return f.sniff(bytes); });
  if (row == std::end(kFormats)) return unknown_format(bytes_untrusted);
  MILLRACE_TRY(const ImageHeader header,
               row->read(bytes, use == UseOrientation::kYes ? Metadata::kRead : Metadata::kSkip));
  MILLRACE_TRY_VOID(check_size(header.size, limits));
  return SourceInfo{row->format, header.size, use == UseOrientation::kYes ? orientation_of(header) : std::uint8_t{1},
                    codec_memory(row->format, header.size, bytes)};
}

}  // namespace millrace
