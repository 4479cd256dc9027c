#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/formats/format_table.h"
#include "daemon/formats/jpeg.h"
#include "daemon/formats/probe.h"
#include "proto/metadata/exif_orientation.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;
using Encoded = std::vector<std::byte>;

constexpr UseOrientation kYes = UseOrientation::kYes;
constexpr UseOrientation kNo = UseOrientation::kNo;

Encoded bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Encoded(first, first + text.size());
}

SourceInfo probed(const Encoded& bytes, UseOrientation use = kYes) {
  Result<SourceInfo> info = probe_image(bytes, SampleLimits{}, use);
  REQUIRE(info.has_value());
  return *info;
}

std::string refused(const Encoded& bytes, const SampleLimits& limits = {}) {
  const Result<SourceInfo> info = probe_image(bytes, limits, kYes);
  REQUIRE_FALSE(info.has_value());
  REQUIRE(info.error().code == Code::kInvalid);
  return info.error().message;
}

Encoded jpeg(std::uint32_t width, std::uint32_t height, int orientation = 0) {
  return make_jpeg({.pixels = make_pixels(width, height, 3, 1), .exif_orientation = orientation});
}
Encoded png(std::uint32_t width, std::uint32_t height, int orientation = 0) {
  return make_png({.pixels = make_pixels(width, height, 3, 1), .exif_orientation = orientation});
}
Encoded webp(std::uint32_t width, std::uint32_t height, bool lossless, int orientation = 0) {
  return make_webp({.pixels = make_pixels(width, height, 3, 1), .lossless = lossless, .exif_orientation = orientation});
}

Encoded inserted(Encoded into, std::size_t at, std::string_view text) {
  const Encoded bytes = bytes_of(text);
  into.insert(into.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(), bytes.end());
  return into;
}

std::string app1(const std::string& payload) {
  const std::size_t length = payload.size() + 2;
  return std::string("\xFF\xE1") + static_cast<char>(length >> 8U) + static_cast<char>(length & 255U) + payload;
}

// A PNG chunk whose checksum is not right, which the probe does not look at.
std::string chunk(const std::string& type, const std::string& data) {
  const std::uint32_t length = static_cast<std::uint32_t>(data.size());
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(length >> static_cast<unsigned>(shift) & 255U);
  return text + type + data + "\0\0\0\0"s;
}

TEST_CASE("format and size are read from the header of every format", "[formats]") {
  REQUIRE(probed(jpeg(61, 33)).format == ImageFormat::kJpeg);
  REQUIRE(probed(jpeg(61, 33)).stored == Size{61, 33});
  REQUIRE(probed(make_jpeg({.pixels = make_pixels(70, 20, 1, 1), .progressive = true})).stored == Size{70, 20});
  REQUIRE(probed(png(300, 2)).format == ImageFormat::kPng);
  REQUIRE(probed(png(300, 2)).stored == Size{300, 2});
  REQUIRE(probed(webp(17, 90, false)).format == ImageFormat::kWebp);
  REQUIRE(probed(webp(17, 90, false)).stored == Size{17, 90});
  REQUIRE(probed(webp(1000, 3, true)).stored == Size{1000, 3});
  REQUIRE(probed(webp(20, 30, true, 6)).stored == Size{20, 30});
  REQUIRE(probed(make_pnm({.pixels = make_pixels(9, 4, 4, 1)})).format == ImageFormat::kPnm);
  REQUIRE(probed(make_pnm({.pixels = make_pixels(9, 4, 4, 1)})).stored == Size{9, 4});
  REQUIRE(probed(make_bmp({.pixels = make_pixels(9, 4, 4, 1), .top_down = true})).stored == Size{9, 4});
  REQUIRE(probed(make_gif({.pixels = make_pixels(9, 4, 1, 1)})).stored == Size{9, 4});
  REQUIRE(probed(make_l3({.pixels = make_pixels(90, 4, 3, 1)})).format == ImageFormat::kL3);
  REQUIRE(probed(make_l3({.pixels = make_pixels(90, 4, 3, 1)})).stored == Size{90, 4});
}

TEST_CASE("the orientation is read from every format, and ignored when asked to", "[formats]") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const Encoded& image : {jpeg(16, 8, orientation), png(16, 8, orientation), webp(16, 8, false, orientation),
                                 make_l3({.pixels = make_pixels(16, 8, 3, 1), .orientation = orientation})}) {
      REQUIRE(probed(image, kYes).orientation == orientation);
      REQUIRE(probed(image, kNo).orientation == 1);
      REQUIRE(probed(image, kNo).stored == Size{16, 8});
    }
  }
}

TEST_CASE("an orientation outside 1 ... 8 means none", "[formats]") {
  REQUIRE(probed(jpeg(16, 8, 9)).orientation == 1);
  REQUIRE(probed(png(16, 8, 200)).orientation == 1);
  REQUIRE(probed(jpeg(16, 8)).orientation == 1);
}

TEST_CASE("XMP gives the orientation where EXIF does not", "[formats]") {
  const std::string xmp = "http://ns.adobe.com/xap/1.0/\0<rdf:Description tiff:Orientation=\"8\"/>"s;
  const std::string itxt = "XML:com.adobe.xmp\0\0\0en\0\0<tiff:Orientation>3</tiff:Orientation>"s;

  REQUIRE(probed(inserted(jpeg(16, 8), 2, app1(xmp))).orientation == 8);
  REQUIRE(probed(inserted(jpeg(16, 8, 6), 2, app1(xmp))).orientation == 6);
  REQUIRE(probed(inserted(png(16, 8), 33, chunk("iTXt", itxt))).orientation == 3);
}

TEST_CASE("a PNG's header may stand behind other chunks, and be longer than it should", "[formats]") {
  const Encoded image = png(16, 8);
  Encoded longer = inserted(image, 29, "more");
  longer[11] = std::byte{17};

  REQUIRE(probed(inserted(image, 8, chunk("tEXt", "a"))).stored == Size{16, 8});
  REQUIRE(probed(longer).stored == Size{16, 8});
}

TEST_CASE("a PNG's eXIf may follow the image data", "[formats]") {
  const Encoded exif = make_exif(5);
  const Encoded image = png(16, 8);
  const std::string data(reinterpret_cast<const char*>(exif.data()), exif.size());

  REQUIRE(probed(inserted(image, image.size() - 12, chunk("eXIf", data))).orientation == 5);
}

TEST_CASE("fill bytes and junk between JPEG segments are passed over", "[formats]") {
  const Encoded plain = jpeg(16, 8, 6);

  REQUIRE(probed(inserted(plain, 2, "\xFF\xFF\xFF"sv)).orientation == 6);
  REQUIRE(probed(inserted(plain, 2, "\xFF\0junk\xFF\0junk"s)).stored == Size{16, 8});
}

TEST_CASE("EXIF is read in both byte orders, from numbers of several types", "[formats]") {
  const auto orientation = [](std::string_view exif) { return exif_orientation(bytes_of(exif)); };

  REQUIRE(orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv) == 6U);
  REQUIRE(orientation("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"sv) == 6U);
  REQUIRE(orientation("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x04\0\x01\0\0\0\x06\0\0\0"sv) == 6U);
  REQUIRE(orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\x01\0\0\0\x06\0\0\0"sv) == 0U);              // text
  REQUIRE_FALSE(orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x63\0\x01\0\0\0\x06\0\0\0"sv).has_value());  // unknown type
}

TEST_CASE("EXIF that points outside itself, or goes on too long, has no orientation", "[formats]") {
  const auto orientation = [](std::string_view exif) { return exif_orientation(bytes_of(exif)); };

  REQUIRE_FALSE(orientation("II*\0\xFF\xFF\xFF\xFF"sv).has_value());
  REQUIRE_FALSE(orientation("II*\0\x08\0\0\0\xFF\xFF"sv).has_value());
  REQUIRE_FALSE(orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\xFF\xFF\xFF\xFF\x06\0\0\0"sv).has_value());
  REQUIRE_FALSE(orientation("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x04\0\0\0\xF0\xFF\xFF\xFF"sv).has_value());
  REQUIRE(orientation("II"sv) == 0U);
  REQUIRE(orientation("MM\0*\0\0\0"sv) == 0U);
  REQUIRE_FALSE(orientation(""sv).has_value());
  REQUIRE_FALSE(orientation("Exif\0\0"sv).has_value());
}

TEST_CASE("a big-endian TIFF block with BigTIFF's mark is read as TIFF, as in Pillow", "[formats]") {
  const auto orientation = [](std::string_view exif) { return exif_orientation(bytes_of(exif)); };

  REQUIRE(orientation("MM\0+\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"sv) == 6U);
  REQUIRE(orientation("II+\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"sv) == 0U);
}

TEST_CASE("EXIF in several segments of a JPEG is one block, as in Pillow", "[formats]") {
  const std::string exif = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s;
  for (const std::size_t first : {0U, 1U, 8U, 9U, 20U, 21U}) {
    const std::string segments = app1("Exif\0\0"s + exif.substr(0, first)) + app1("other") +
                                 app1("Exif\0\0"s + exif.substr(first, 3)) + app1("Exif\0\0"s) +
                                 app1("Exif\0\0"s + (first + 3 < exif.size() ? exif.substr(first + 3) : ""));

    CAPTURE(first);
    REQUIRE(probed(inserted(jpeg(16, 8), 2, segments)).orientation == 6);
  }
}

TEST_CASE("of EXIF in many segments of a JPEG the first MiB is read", "[formats]") {
  const std::string part = "Exif\0\0"s + std::string(65'000, '\0');
  const std::string exif = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s;
  std::string segments = app1(exif);
  for (int i = 0; i < 40; ++i) segments += app1(part);

  REQUIRE(probed(inserted(jpeg(16, 8), 2, segments)).orientation == 6);
}

TEST_CASE("what is no image is refused with its first bytes", "[formats]") {
  std::string known = "not an image that this daemon knows (JPEG";
  for (const Format& format : kFormats) known += format.title == "JPEG" ? "" : ", " + std::string(format.title);

  REQUIRE(refused(bytes_of("htm>")) == known + "); it begins with 68 74 6d 3e");
  REQUIRE(refused(bytes_of("\xFF")) == known + "); it begins with ff");
  REQUIRE(refused({}) == "an empty file");
  REQUIRE(refused(bytes_of("\0\0\0\x18"
                           "ftyphevc\0\0\0\0"sv))
              .starts_with("HEIF is not decoded by this daemon: convert the picture to one of JPEG, "));
  REQUIRE(refused(bytes_of("\xFF\x0A\xFA\x1F"sv)).starts_with("JPEG XL is not decoded by this daemon: "));
  REQUIRE(refused(bytes_of("\0\0\0\x0CjP  \r\n"sv)).starts_with("JPEG 2000 is not decoded by this daemon: "));
}

TEST_CASE("what downloads leave under a picture's name is named", "[formats]") {
  const std::string page = "not an image, but an HTML page: what a server says instead of a picture";

  CHECK(refused(bytes_of("<!DOCTYPE html>\n<p>404")) == page);
  CHECK(refused(bytes_of("\xEF\xBB\xBF \r\n<HTML lang=en>")) == page);
  CHECK(refused(bytes_of("<?xml version='1.0'?><Error>")) == "not an image, but an XML or SVG document");
  CHECK(refused(bytes_of("{\"error\": 404}")) == "not an image, but a JSON document");
  CHECK(refused(bytes_of("version https://git-lfs.github.com/spec/v1\noid sha256:0")) ==
        "not an image, but a Git LFS pointer, not the file: `git lfs pull` brings that");
  CHECK(refused(Encoded(1'000)) ==
        "not an image, but zeros from its beginning on: the file was made and not written, or its disk was full");
  CHECK(refused(bytes_of("PK\x03\x04zip")) == "not an image, but an archive or a compressed file: unpack it");
  CHECK(refused(inserted(Encoded(300, std::byte{'a'}), 257, "ustar")) ==
        "not an image, but an archive or a compressed file: unpack it");
  CHECK(refused(bytes_of("%PDF-1.7")) == "not an image, but a PDF document");
  CHECK(refused(bytes_of(" \r\n")) == "not an image, but spaces and line ends alone");
}

TEST_CASE("a segment whose length does not even count itself is passed over where nobody reads it", "[formats]") {
  for (const char* const marker : {"\xFF\xE0", "\xFF\xE1", "\xFF\xE2", "\xFF\xEE", "\xFF\xFE", "\xFF\xDC"}) {
    for (const std::string_view length : {"\0\0"sv, "\0\1"sv}) {
      const Encoded file = inserted(jpeg(16, 8, 6), 2, marker + std::string(length));
      CHECK(probed(file).stored == Size{16, 8});
      CHECK(probed(file).orientation == 6);
    }
  }
  CHECK(refused(inserted(jpeg(16, 8), 2, "\xFF\xDB\0\1"sv)) ==
        "a broken JPEG: segment ff db has a length of 1, which counts its own 2 bytes");
}

TEST_CASE("an orientation of another type than SHORT counts where it is a number to Pillow", "[formats]") {
  const auto exif = [](int type, std::string_view value) {
    const auto size = static_cast<char>(value.size() > 4 ? 1 : 4 / value.size());
    std::string block = "MM\0*\0\0\0\x08\0\x01\x01\x12\0"s + static_cast<char>(type) + "\0\0\0"s + size;
    block += value.size() > 4 ? "\0\0\0\x1A\0\0\0\0"s + std::string(value) : std::string(value) + "\0\0\0\0"s;
    return probed(inserted(jpeg(16, 8), 2, app1("Exif\0\0"s + block))).orientation;
  };

  CHECK(exif(1, "\6\0\0\0"sv) == 1);  // BYTE
  CHECK(exif(4, "\0\0\0\6"sv) == 6);
  CHECK(exif(5, "\0\0\0\x0C\0\0\0\2"sv) == 6);
  CHECK(exif(5, "\0\0\0\x0D\0\0\0\2"sv) == 1);
  CHECK(exif(5, "\0\0\0\6\0\0\0\0"sv) == 1);
  CHECK(exif(7, "\6\0\0\0"sv) == 1);  // UNDEFINED
  CHECK(exif(10, "\xFF\xFF\xFF\xFA\xFF\xFF\xFF\xFF"sv) == 6);
  CHECK(exif(11, "\x40\xC0\0\0"sv) == 6);
  CHECK(exif(11, "\x40\xC8\0\0"sv) == 1);  // 6.25
  CHECK(exif(12, "\x40\x18\0\0\0\0\0\0"sv) == 6);
  CHECK(exif(12, "\x7F\xF8\0\0\0\0\0\0"sv) == 1);
}

TEST_CASE("a file cut off before its size is refused, and one cut off later is left to the decoder", "[formats]") {
  const std::vector<Encoded> images{jpeg(61, 33, 6), png(61, 33, 6), webp(61, 33, false, 6), webp(61, 33, true),
                                    webp(61, 33, false)};
  for (const Encoded& image : images) {
    bool sized = false;
    for (std::size_t size = 1; size <= image.size(); ++size) {
      const Encoded cut(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size));
      const Result<SourceInfo> info = probe_image(cut, SampleLimits{}, kYes);
      if (info) REQUIRE(info->stored == Size{61, 33});
      REQUIRE((info || !sized));
      sized = sized || info.has_value();
    }
    REQUIRE(sized);
  }

  REQUIRE(refused(bytes_of("\xFF\xD8\xFF\xE0\0\x10JFIF"sv)) == "cut off: the file ends before the frame header");
  REQUIRE(refused(bytes_of("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0"sv)) == "cut off: the file ends before the IHDR chunk");
}

TEST_CASE("a side of 0 is refused", "[formats]") {
  const auto frame = [](std::string_view size) {
    return bytes_of("\xFF\xD8\xFF\xC0\0\x0B\x08"s + std::string(size) + "\x01\x01\x11\0"s);
  };

  REQUIRE(probed(frame("\0\x07\0\x05"sv)).stored == Size{5, 7});
  REQUIRE(refused(frame("\0\0\0\x05"sv)).find("DNL") != std::string::npos);
  REQUIRE(refused(frame("\0\x07\0\0"sv)) == "its header says 0x7 pixels: there is nothing to decode");
  REQUIRE(refused(bytes_of("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\0\0\0\0\x05\x08\x02\0\0\0"sv)) ==
          "its header says 0x5 pixels: there is nothing to decode");
}

TEST_CASE("sizes over the limits are refused with the limit's name", "[formats]") {
  const Encoded gigantic = bytes_of("\xFF\xD8\xFF\xC0\0\x0B\x08\xE6\x78\xE6\x78\x01\x01\x11\0"sv);

  REQUIRE(refused(gigantic, {.pixels = 1'000'000}) ==
          "59000x59000 pixels are over the limit of 1000000 (limits.pixels)");
  REQUIRE(refused(gigantic, {.side = 50'000}) == "59000x59000 pixels are over the limit of 50000 a side (limits.side)");
  REQUIRE(probe_image(jpeg(10, 10), {.pixels = 100, .side = 10}, kYes).has_value());
  REQUIRE(refused(jpeg(10, 10), {.pixels = 99}).find("(limits.pixels)") != std::string::npos);
}

TEST_CASE("a broken beginning is refused with what is wrong", "[formats]") {
  REQUIRE(refused(bytes_of("\xFF\xD8\xFF\xD9"sv)).find("marker ff d9") != std::string::npos);
  REQUIRE(refused(bytes_of("\xFF\xD8\xFF\xDA\0\x02"sv)).find("marker ff da") != std::string::npos);
  REQUIRE(refused(bytes_of("\x89PNG\r\n\x1A\n\0\0\0\x0Ctexttexttexttext1234"sv)).find("IHDR") != std::string::npos);
  REQUIRE(refused(bytes_of("\x89PNG\r\n\x1A\n\0\0\0\0IDAT1234"sv)) ==
          "a broken PNG: it has no IHDR chunk before its image data");
  REQUIRE(refused(bytes_of("\x89PNG\r\n\x1A\n\0\0\0\x0CIHDR"sv)) == "a broken PNG: its IHDR chunk is too short");
  REQUIRE(refused(bytes_of("RIFF\x20\0\0\0WEBPABCD\x08\0\0\0........"sv)).find("first chunk") != std::string::npos);
  REQUIRE(refused(bytes_of("RIFF\x20\0\0\0WEBPVP8 \x0A\0\0\0.........."sv)).find("VP8 key frame") != std::string::npos);
}

TEST_CASE("a progressive JPEG's scans are counted, a plain one has one", "[formats]") {
  const Encoded plain = make_jpeg({.pixels = make_pixels(64, 64, 3, 1)});
  const Encoded progressive = make_jpeg({.pixels = make_pixels(64, 64, 3, 1), .progressive = true});
  Encoded many = progressive;
  for (int i = 0; i < 3'000; ++i) many.insert(many.end(), {std::byte{0xFF}, std::byte{0xDA}});

  CHECK(count_jpeg_scans(plain) == 1);
  CHECK(count_jpeg_scans(progressive) == 10);  // libjpeg's own script for three components
  CHECK(count_jpeg_scans(many) == Format::kMostPasses);
  CHECK(count_jpeg_scans({}) == 1);
}

}  // namespace
}  // namespace millrace
