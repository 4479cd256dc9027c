#include <catch2/catch.hpp>

#include "daemon/formats/decoding_memory.h"
#include "daemon/formats/probe.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

SourceInfo probed_file(const std::vector<std::byte>& bytes) {
  return *probe_image(bytes, SampleLimits{}, UseOrientation::kYes);
}

SampleGeometry whole(Size size) {
  const Box all{0, 0, static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
  return {.crop = all, .resized = {16, 16}, .window = {0, 0, 16, 16}};
}

}  // namespace

TEST_CASE("a JPEG of several scans holds all its coefficients, one of a single scan none", "[formats]") {
  const Pixels pixels = make_pixels(1000, 600, 3, 1);

  const auto sequential = make_jpeg({.pixels = pixels}),
             progressive = make_jpeg({.pixels = pixels, .progressive = true});
  const auto beside_file = [](const std::vector<std::byte>& file) {
    return probed_file(file).codec.needed.count - 2 * file.size();
  };

  // 4:2:0, 63 x 38 MCUs of six blocks
  REQUIRE(beside_file(progressive) - beside_file(sequential) == 63ULL * 38 * 6 * 128);
}

TEST_CASE("what a decoder copies of a JPEG file counts, what stands behind the image too", "[formats]") {
  auto file = make_jpeg({.pixels = make_pixels(64, 64, 3, 1)});
  const Bytes before = probed_file(file).codec.needed;

  file.resize(file.size() + (40 << 20));

  REQUIRE(probed_file(file).codec.needed >= before + 40_MiB);
}

TEST_CASE("only a WebP that may be lossless takes memory for its whole picture", "[formats]") {
  const Pixels pixels = make_pixels(800, 600, 3, 1);

  const CodecMemory lossy = probed_file(make_webp({.pixels = pixels})).codec;
  const CodecMemory with_exif = probed_file(make_webp({.pixels = pixels, .exif_orientation = 6})).codec;
  const CodecMemory with_alpha = probed_file(make_webp({.pixels = make_pixels(800, 600, 4, 1)})).codec;
  const CodecMemory lossless = probed_file(make_webp({.pixels = pixels, .lossless = true})).codec;

  REQUIRE(lossy.at_most < 4_MiB);
  REQUIRE(with_exif == lossy);
  REQUIRE(with_alpha.needed == lossless.needed);
  REQUIRE(lossless.needed > Bytes{800 * 600 * 5});
  REQUIRE(lossless.at_most > lossless.needed);
}

TEST_CASE("what decoding takes grows with the crop, and doubles where it has to be turned", "[formats]") {
  SourceInfo info = probed_file(make_png_header(5000, 4000));
  const Bytes all = decoding_memory(info, whole({5000, 4000})).needed;
  SampleGeometry half = whole({5000, 4000});
  half.crop.height = 2000;

  REQUIRE(all > Bytes{5000 * 4000 * 3});
  REQUIRE(decoding_memory(info, half).needed < Bytes{5000 * 2100 * 3} + 4_MiB);
  info.orientation = 6;
  REQUIRE(decoding_memory(info, whole({4000, 5000})).needed > Bytes{2 * 5000 * 4000 * 3});
}

}  // namespace millrace
