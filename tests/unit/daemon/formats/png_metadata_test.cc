// The orientation in the chunks of PNG files, by Pillow's rules.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/formats/probe.h"
#include "proto/metadata/inflated_text.h"
#include "tests/support/pictures/png_file.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using namespace std::string_literals;

constexpr const char* kXmp = "XML:com.adobe.xmp";
constexpr const char* kRawExif = "Raw profile type exif";

std::string exif(int orientation) {
  const std::vector<std::byte> bytes = make_exif(orientation);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string packet(int orientation) {
  return "<rdf:Description tiff:Orientation=\"" + std::to_string(orientation) + "\"/>";
}

std::string profile(const std::string& bytes) {
  std::string text = "\nexif\n" + std::to_string(bytes.size()) + "\n";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(bytes[i]) >> 4U];
    text += kDigits[static_cast<unsigned char>(bytes[i]) & 15U];
    if (i % 36 == 35) text += '\n';
  }
  return text + "\n";
}

PngPart text(const std::string& keyword, const std::string& value) {
  return {"tEXt", keyword + '\0' + value};
}
PngPart compressed(const std::string& keyword, const std::string& value) {
  return {"zTXt", keyword + "\0\0"s + deflated(value)};
}
PngPart international(const std::string& keyword, const std::string& value) {
  return {"iTXt", keyword + "\0\0\0en\0key\0"s + value};
}
PngPart compressed_international(const std::string& keyword, const std::string& value) {
  return {"iTXt", keyword + "\0\1\0en\0key\0"s + deflated(value)};
}

// Of a PNG with these chunks before its image data and behind.
int orientation(const std::vector<PngPart>& before, const std::vector<PngPart>& behind = {}) {
  std::vector<PngPart> parts = parts_of(make_png({.pixels = make_pixels(16, 8, 3, 1)}));
  parts.insert(parts.end() - 1, behind.begin(), behind.end());
  parts.insert(parts.begin() + 1, before.begin(), before.end());
  const Result<SourceInfo> info = probe_image(make_png_of(parts), SampleLimits{}, UseOrientation::kYes);
  REQUIRE(info);
  REQUIRE(info->stored == Size{16, 8});
  return info->orientation;
}

}  // namespace

TEST_CASE("XMP is read from every kind of PNG text, before the image data and behind", "[formats]") {
  for (const auto kind : {text, compressed, international, compressed_international}) {
    REQUIRE(orientation({kind(kXmp, packet(6))}) == 6);
    REQUIRE(orientation({}, {kind(kXmp, packet(7))}) == 7);
    REQUIRE(orientation({kind("Comment", packet(6))}) == 1);
  }
}

TEST_CASE("a raw EXIF profile is read from every kind of PNG text", "[formats]") {
  for (const auto kind : {text, compressed, international, compressed_international}) {
    REQUIRE(orientation({kind(kRawExif, profile(exif(6)))}) == 6);
    REQUIRE(orientation({kind(kRawExif, profile("Exif\0\0"s + exif(5)))}) == 5);
  }
}

TEST_CASE("a PNG's EXIF goes before its raw profile, and both before XMP", "[formats]") {
  const PngPart xmp = text(kXmp, packet(2)), raw = compressed(kRawExif, profile(exif(3))), chunk{"eXIf", exif(4)};

  REQUIRE(orientation({xmp, raw, chunk}) == 4);
  REQUIRE(orientation({chunk, raw, xmp}) == 4);
  REQUIRE(orientation({xmp, raw}) == 3);
  REQUIRE(orientation({raw, text("exif", exif(8))}) == 8);
  REQUIRE(orientation({chunk}, {text("exif", exif(8))}) == 8);
  REQUIRE(orientation({xmp, {"eXIf", ""}}) == 2);
}

TEST_CASE("of several PNG texts of a kind the last one counts", "[formats]") {
  REQUIRE(orientation({text(kXmp, packet(2)), compressed(kXmp, packet(3))}) == 3);
  REQUIRE(orientation({text(kXmp, packet(2)), text(kXmp, "no orientation")}) == 1);
  REQUIRE(orientation({international(kXmp, packet(2)), text(kXmp, "")}) == 2);
  REQUIRE(orientation({text(kRawExif, profile(exif(5)))}, {text(kRawExif, profile(exif(6)))}) == 6);
}

TEST_CASE("what follows the first frame of an animated PNG has no say in its orientation", "[formats]") {
  const auto frame = [](unsigned number) {
    return PngPart{"fcTL", big_endian({number, 16, 8, 0, 0}) + std::string(6, 0)};
  };
  const PngPart two{"acTL", big_endian({2, 0})}, one{"acTL", big_endian({1, 0})}, xmp = text(kXmp, packet(6));

  REQUIRE(orientation({two, frame(0)}, {xmp, frame(1)}) == 6);
  REQUIRE(orientation({two, frame(0)}, {frame(1), xmp}) == 1);
  REQUIRE(orientation({one}, {frame(0), xmp}) == 1);
  REQUIRE(orientation({one, frame(0)}, {frame(1), xmp}) == 6);
}

TEST_CASE("PNG texts that are damaged or do not end say nothing, and cost no more than their limit", "[formats]") {
  const std::string bomb = packet(6) + std::string(InflatedText::kMost, ' ');
  const std::string most = packet(6) + std::string(InflatedText::kMost - packet(6).size(), ' ');
  std::string wrong_checksum = deflated(packet(6));
  wrong_checksum.back() = static_cast<char>(wrong_checksum.back() ^ 1);
  const std::string prefix = kXmp + "\0\0"s;

  REQUIRE(orientation({compressed(kXmp, bomb)}) == 1);
  REQUIRE(orientation({compressed(kXmp, most)}) == 6);
  REQUIRE(orientation({{"zTXt", prefix + "no deflate"}}) == 1);
  REQUIRE(orientation({{"zTXt", prefix + wrong_checksum}}) == 1);
  REQUIRE(orientation({{"zTXt", prefix + deflated(packet(6)).substr(0, deflated(packet(6)).size() - 4)}}) == 6);
  REQUIRE(orientation({{"iTXt", kXmp + "\0\1\1\0\0"s + deflated(packet(6))}}) == 1);
  REQUIRE(orientation({{"iTXt", kXmp + "\0\0\0en"s}, {"tEXt", kXmp}, {"zTXt", kXmp}, {"zTXt", prefix}}) == 1);
  REQUIRE(orientation({text(kRawExif, "\nexif\n8\nno digits")}) == 1);
  REQUIRE(orientation({text(kRawExif, "\nexif")}) == 1);
}

TEST_CASE("hexadecimal digits may be in both cases, with white space between the bytes", "[formats]") {
  const auto bytes = [](std::string_view digits) {
    const Result<InflatedText> text_of = InflatedText::from_hex(std::as_bytes(std::span(digits.data(), digits.size())));
    REQUIRE(text_of);
    return std::string(reinterpret_cast<const char*>(text_of->view().data()), text_of->view().size());
  };

  REQUIRE(bytes("4a 4B\n4c\t") == "JKL");
  REQUIRE(bytes("4a4") == "J");
  REQUIRE(bytes("4a4g") == "");
  REQUIRE(bytes("") == "");
}

}  // namespace millrace
