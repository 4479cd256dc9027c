#include "daemon/formats/probe.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/formats/format_table.h"

namespace millrace {
namespace {

using namespace std::string_view_literals;

// What people send all the same; empty: none of them. ISO/IEC 23008-12 has the brands of what begins with "ftyp".
std::string_view other_picture(const ByteReader& bytes) {
  if (bytes.holds(0, "\0\0\0\x0CJXL "sv) || bytes.holds(0, "\xFF\x0A"sv)) return "JPEG XL";
  if (bytes.holds(0, "\0\0\0\x0CjP  "sv) || bytes.holds(0, "\xFF\x4F\xFF\x51"sv)) return "JPEG 2000";
  if (!bytes.holds(4, "ftyp")) return {};
  for (const std::string_view brand : {"hevc", "hevx", "mif1", "msf1"}) {
    if (bytes.holds(8, brand)) return "HEIF";
  }
  return {};
}

Error unknown_format(ByteView bytes) {
  std::string known;
  for (const Format& format : kFormats) {
    if (format.format != kFormats.front().format) known += ", ";
    known += format.title;
  }
  if (const std::string_view other = other_picture(ByteReader(bytes)); !other.empty())
    return Error{Code::kInvalid,
                 std::string(other) + " is not decoded by this daemon: convert the picture to one of " + known};
  std::string text = "not an image that this daemon knows (" + known + "); it begins with";
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    char hex[8];
    std::snprintf(hex, sizeof hex, " %02x", std::to_integer<unsigned>(byte));
    text += hex;
  }
  return Error{Code::kInvalid, std::move(text)};
}

auto format_of_bytes(const ByteReader& bytes) {
  return std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& f) { return f.recognises(bytes); });
}

std::uint8_t orientation_of(const ImageHeader& header) {
  const std::uint32_t found = header.exif ? *header.exif : header.xmp.value_or(1);
  return found >= 1 && found <= 8 ? static_cast<std::uint8_t>(found) : std::uint8_t{1};
}

}  // namespace

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

Result<void> check_format(ByteView beginning_untrusted) {
  const auto format = format_of_bytes(ByteReader(beginning_untrusted));
  return format == kFormats.end() ? Result<void>(unknown_format(beginning_untrusted)) : Result<void>();
}

bool is_probed_quickly(ByteView bytes_untrusted) {
  const ByteReader bytes(bytes_untrusted);
  const auto format = format_of_bytes(bytes);
  return format != kFormats.end() && format->is_read_quickly != nullptr && format->is_read_quickly(bytes);
}

Result<SourceInfo> probe_image(ByteView bytes_untrusted, const SampleLimits& limits, UseOrientation use) {
  if (bytes_untrusted.empty()) return Error{Code::kInvalid, "an empty file"};
  const ByteReader bytes(bytes_untrusted);
  const auto format = format_of_bytes(bytes);
  if (format == kFormats.end()) return unknown_format(bytes_untrusted);
  MILLRACE_TRY(const ImageHeader header,
               format->read_header(bytes, use == UseOrientation::kYes ? Metadata::kRead : Metadata::kSkip));
  MILLRACE_TRY_VOID(check_size(header.size, limits));
  return SourceInfo{format->format, header.size, use == UseOrientation::kYes ? orientation_of(header) : std::uint8_t{1},
                    format->codec_memory(header.size, bytes), header.has};
}

}  // namespace millrace
