// What the table of formats says that files may have (ImageFeatures), the probe finds and the CPU takes: a file for
// each, and nothing said of which there is none.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/formats/format_table.h"
#include "daemon/formats/probe.h"
#include "tests/support/pictures/heic_files.h"
#include "tests/support/pictures/png_file.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {

using File = std::vector<std::byte>;

namespace {

constexpr std::uint32_t kSide = 24;

struct Example {
  ImageFormat format;
  ImageFeatures has;
  File file;
};

Pixels pixels(std::uint32_t channels) {
  return make_pixels(kSide, kSide, channels, 7);
}

// The picture itself is the first frame, and there is a second one.
File animated_png() {
  const auto frame = [](unsigned number) {
    return big_endian({number, kSide, kSide, 0, 0}) + std::string("\0\x01\0\x0A\0\0", 6);
  };
  std::vector<PngPart> parts = parts_of(make_png({.pixels = pixels(3)}));
  const std::string image = parts[1].data;
  REQUIRE(parts[1].type == "IDAT");
  parts.insert(parts.begin() + 1, {{"acTL", big_endian({2, 0})}, {"fcTL", frame(0)}});
  parts.insert(parts.end() - 1, {{"fcTL", frame(1)}, {"fdAT", big_endian({2}) + image}});
  return make_png_of(parts);
}

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i & 255U);
  return text;
}

std::string chunk(const std::string& type, const std::string& data) {
  return type + little_endian(static_cast<std::uint32_t>(data.size()), 4) + data +
         (data.size() % 2 == 1 ? std::string(1, '\0') : "");
}

// RFC 9649, 2.7.1: two frames as large as the canvas.
File animated_webp() {
  const File plain = make_webp({.pixels = pixels(3)});
  const std::string image(reinterpret_cast<const char*>(plain.data()) + 12, plain.size() - 12);
  const std::string canvas = little_endian(kSide - 1, 3) + little_endian(kSide - 1, 3);
  const std::string frame =
      chunk("ANMF", little_endian(0, 6) + canvas + little_endian(40, 3) + little_endian(0, 1) + image);
  const std::string chunks =
      "WEBP" + chunk("VP8X", little_endian(2, 4) + canvas) + chunk("ANIM", little_endian(0, 6)) + frame + frame;
  const std::string text = chunk("RIFF", chunks);
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::vector<Example> examples() {
  std::vector<Example> all{
      {ImageFormat::kJpeg, {.cmyk = true}, make_jpeg({.pixels = pixels(4)})},
      {ImageFormat::kJpeg, {.passes = true}, make_jpeg({.pixels = pixels(3), .progressive = true})},
      {ImageFormat::kPng, {.alpha = true}, make_png({.pixels = pixels(4)})},
      {ImageFormat::kPng, {.deep = true}, make_png({.pixels = pixels(3), .bit_depth = 16})},
      {ImageFormat::kPng, {.passes = true}, make_png({.pixels = pixels(3), .interlaced = true})},
      {ImageFormat::kPng, {.animation = true}, animated_png()},
      {ImageFormat::kWebp, {.alpha = true}, make_webp({.pixels = pixels(4)})},
      {ImageFormat::kWebp, {.animation = true}, animated_webp()},
      {ImageFormat::kPnm, {.alpha = true}, make_pnm({.pixels = pixels(4)})},
      {ImageFormat::kBmp, {.alpha = true}, make_bmp({.pixels = pixels(4)})},
      {ImageFormat::kGif, {.alpha = true}, make_gif({.pixels = pixels(1), .transparent = true})},
      {ImageFormat::kGif, {.passes = true}, make_gif({.pixels = pixels(1), .interlaced = true})},
      {ImageFormat::kGif, {.animation = true}, make_gif({.pixels = pixels(1), .animated = true})},
      {ImageFormat::kTiff, {.alpha = true}, make_tiff({.pixels = pixels(4)})},
      {ImageFormat::kTiff, {.cmyk = true}, make_tiff({.pixels = pixels(4), .inks = true})},
      {ImageFormat::kTiff, {.deep = true}, make_tiff({.pixels = pixels(3), .bit_depth = 16})},
      {ImageFormat::kL3, {.alpha = true}, make_l3({.pixels = pixels(4)})},
      {ImageFormat::kL3, {.deep = true}, make_l3({.pixels = pixels(3), .bit_depth = 16})},
      {ImageFormat::kPnm, {.deep = true}, make_pnm({.pixels = pixels(3), .bits = 16, .most = 65535})},
  };
  if (check_decoder(ImageFormat::kHeic)) {
    all.push_back({ImageFormat::kHeic, {.alpha = true}, heic_file("alpha")});
    all.push_back({ImageFormat::kHeic, {.deep = true}, heic_file("deep")});
  }
  if (!can_make_avif()) return all;
  all.push_back({ImageFormat::kAvif, {.alpha = true}, make_avif({.pixels = pixels(4)})});
  all.push_back({ImageFormat::kAvif, {.deep = true}, make_avif({.pixels = pixels(3), .bit_depth = 10})});
  all.push_back({ImageFormat::kAvif, {.animation = true}, make_avif({.pixels = pixels(3), .animated = true})});
  return all;
}

TEST_CASE("a file with any feature of its format is decoded, to one picture of three channels", "[backend]") {
  for (const Example& example : examples()) {
    CAPTURE(format_of(example.format).title, example.has.alpha, example.has.cmyk, example.has.deep, example.has.passes,
            example.has.animation);
    const Result<SourceInfo> info = probe_image(example.file, SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info.has_value());
    PixelBuffer buffer;
    EncodedBytes bytes(example.file.size());  // with what decoders may read behind it
    std::copy(example.file.begin(), example.file.end(), bytes.writable().begin());

    const Result<kernels::U8View> decoded =
        decoder_of(info->format)
            ->decode({bytes.view(), {kSide, kSide}, {0, 0, kSide, kSide}, Clock::now() + std::chrono::minutes(5)},
                     buffer);

    REQUIRE(info->format == example.format);
    REQUIRE(decoded.has_value());
    REQUIRE(decoded->width == kSide);
    REQUIRE(decoded->height == kSide);
    REQUIRE(decoded->channels == 3);
  }
}

TEST_CASE("a file's header tells its features, and no others", "[backend]") {
  for (const Example& example : examples()) {
    CAPTURE(format_of(example.format).title, example.has.alpha, example.has.cmyk, example.has.deep, example.has.passes,
            example.has.animation);
    for (const UseOrientation use : {UseOrientation::kNo, UseOrientation::kYes}) {
      const Result<SourceInfo> info = probe_image(example.file, SampleLimits{}, use);

      REQUIRE(info.has_value());
      REQUIRE(info->has == example.has);
    }
  }
  for (const File& plain :
       {make_jpeg({.pixels = pixels(3)}), make_png({.pixels = pixels(3)}), make_webp({.pixels = pixels(3)}),
        make_pnm({.pixels = pixels(3)}), make_bmp({.pixels = pixels(3)}), make_gif({.pixels = pixels(1)}),
        make_tiff({.pixels = pixels(3)})})
    REQUIRE(probe_image(plain, SampleLimits{}, UseOrientation::kYes)->has == ImageFeatures{});
}

TEST_CASE("transparent colours of a PNG without an alpha channel are alpha", "[backend]") {
  std::vector<PngPart> parts = parts_of(make_png({.pixels = pixels(3)}));
  parts.insert(parts.begin() + 1, {"tRNS", std::string(6, '\0')});

  const Result<SourceInfo> info = probe_image(make_png_of(parts), SampleLimits{}, UseOrientation::kNo);

  REQUIRE(info->has == ImageFeatures{.alpha = true});
}

TEST_CASE("the table says of each format what there is an example of, no less and no more", "[backend]") {
  for (const Format& format : kFormats) {
    if (format.format == ImageFormat::kAvif && !can_make_avif()) continue;
    if (!check_decoder(format.format)) continue;
    ImageFeatures shown;
    for (const Example& example : examples()) {
      if (example.format != format.format) continue;
      shown.alpha |= example.has.alpha;
      shown.cmyk |= example.has.cmyk;
      shown.deep |= example.has.deep;
      shown.passes |= example.has.passes;
      shown.animation |= example.has.animation;
    }
    CAPTURE(format.title);

    REQUIRE(format.features == shown);
  }
}

TEST_CASE("the CPU decodes every format of the table whose library is there, and tells so", "[backend]") {
  const std::vector<ImageFormat> told = decoded_formats();
  for (const Format& format : kFormats) {
    CAPTURE(format.title);
    REQUIRE(decoder_of(format.format) != nullptr);
    const bool is_told = std::find(told.begin(), told.end(), format.format) != told.end();
    const Result<void> can = check_decoder(format.format);

    REQUIRE(is_told == can.has_value());
    if (!can) REQUIRE(can.error().code == Code::kUnsupported);
    if (format.format != ImageFormat::kAvif && format.format != ImageFormat::kHeic) REQUIRE(can);
  }
}

}  // namespace
}  // namespace millrace
