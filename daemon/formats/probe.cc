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

bool begins_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  return std::equal(word.begin(), word.end(), text.begin(), [](char lower, char letter) {
    return lower == (letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter);
  });
}

// What downloads leave under a picture's name; empty: none of it.
std::string_view no_picture(const ByteReader& bytes) {
  constexpr std::size_t kLookedAt = 256;
  const ByteView first = bytes.part(0, kLookedAt);
  if (std::all_of(first.begin(), first.end(), [](std::byte byte) { return byte == std::byte{0}; }))
    return "zeros from its beginning on: the file was made and not written, or its disk was full";
  if (bytes.holds(0, "version https://git-lfs.github.com/spec/"sv))
    return "a Git LFS pointer, not the file: `git lfs pull` brings that";
  if (bytes.holds(0, "PK\x03\x04"sv) || bytes.holds(0, "\x1F\x8B"sv) || bytes.holds(0, "7z\xBC\xAF\x27\x1C"sv) ||
      bytes.holds(0,
                  "\xFD"
                  "7zXZ\0"sv) ||
      bytes.holds(0, "\x28\xB5\x2F\xFD"sv) || bytes.holds(257, "ustar"sv))
    return "an archive or a compressed file: unpack it";
  if (bytes.holds(0, "%PDF-"sv)) return "a PDF document";
  std::string_view text = ByteReader::text(bytes.bytes());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return "spaces and line ends alone";
  text.remove_prefix(begin);
  for (const std::string_view mark : {"<!doctype html", "<html", "<head", "<body"})
    if (begins_with_word(text, mark)) return "an HTML page: what a server says instead of a picture";
  if (begins_with_word(text, "<?xml") || begins_with_word(text, "<svg")) return "an XML or SVG document";
  if (text.starts_with("{\"") || text.starts_with("[{") || text.starts_with("{\n")) return "a JSON document";
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
  if (const std::string_view what = no_picture(ByteReader(bytes)); !what.empty())
    return Error{Code::kInvalid, "not an image, but " + std::string(what)};
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
