// The PNG and WebP decoders of the CPU backend: boxes against whole pictures, and the verdicts on bad files.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/decoders/webp_decoder.h"
#include "tests/conformance/slow_path.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {

namespace {

kernels::Size size_of(const Pixels& pixels) {
  return {static_cast<int>(pixels.width), static_cast<int>(pixels.height)};
}

DecodeRequest request_for(const File& file, kernels::Size size, const kernels::Box& box) {
  return {file, size, box, Clock::now() + std::chrono::minutes(5)};
}

void check_cut_boxes(DecodeFunction decode, const File& file, const Pixels& full, std::mt19937& random) {
  PixelBuffer buffer;
  const kernels::Size size = size_of(full);
  const kernels::U8View view{full.data.data(), size.width, size.height, static_cast<int>(full.channels),
                             static_cast<std::ptrdiff_t>(full.width) * full.channels};
  for (int i = 0; i < 25; ++i) {
    const int left = static_cast<int>(random() % full.width), top = static_cast<int>(random() % full.height);
    const kernels::Box box{left, top, 1 + static_cast<int>(random() % (full.width - static_cast<unsigned>(left))),
                           1 + static_cast<int>(random() % (full.height - static_cast<unsigned>(top)))};
    const Result<kernels::U8View> part = decode(request_for(file, size, box), buffer);
    CAPTURE(size.width, size.height, box.left, box.top, box.width, box.height);
    REQUIRE(part);
    REQUIRE(part->channels == view.channels);
    for (int y = 0; y < box.height; ++y) {
      const std::uint8_t* const expected = view.crop(box).row(y);
      REQUIRE(std::equal(expected, expected + box.width * view.channels, part->row(y)));
    }
  }
}

Error error_of(DecodeFunction decode, const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> part = decode(request_for(file, size, {0, 0, 1, 1}), buffer);
  REQUIRE_FALSE(part);
  return part.error();
}

std::size_t chunk_at(const File& png, std::string_view type) {
  const auto* const begin = reinterpret_cast<const char*>(png.data());
  return std::string_view(begin, png.size()).find(type);
}

}  // namespace

TEST_CASE("any box of a PNG has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  for (const std::uint32_t channels : {1U, 2U, 3U, 4U}) {
    for (const bool interlaced : {false, true}) {
      const Pixels pixels = make_pixels(1 + random() % 120, 1 + random() % 120, channels, random());
      const File png = make_png({.pixels = pixels, .interlaced = interlaced});

      CAPTURE(channels, interlaced);
      check_cut_boxes(decode_png, png, decode_slowly(ImageFormat::kPng, png), random);
    }
  }
}

TEST_CASE("16-bit colour keeps its upper byte, 16-bit grey is cut off at 255, as in Pillow", "[backend]") {
  std::mt19937 random(2);
  const Pixels colour = make_pixels(31, 17, 3, 1);
  check_cut_boxes(decode_png, make_png({.pixels = colour, .bit_depth = 16}), colour, random);

  Pixels grey = make_pixels(31, 17, 1, 1);
  const File png = make_png({.pixels = grey, .bit_depth = 16});
  for (std::uint8_t& value : grey.data) value = 255;  // v * 256 + (255 - v) is 255 or more for every v

  check_cut_boxes(decode_png, png, grey, random);
}

TEST_CASE("a wrong checksum is an error before the image data of a PNG, and ignored in them", "[backend]") {
  const Pixels pixels = make_pixels(40, 30, 3, 1);
  File header = make_png({.pixels = pixels, .exif_orientation = 3});
  File exif = header, data = header;
  header[chunk_at(header, "IHDR") + 4 + 13] ^= std::byte{1};
  exif[chunk_at(exif, "eXIf") + 4] ^= std::byte{1};
  data[chunk_at(data, "IEND") - 5] ^= std::byte{1};

  const Error in_header = error_of(decode_png, header, {40, 30});
  const Error in_exif = error_of(decode_png, exif, {40, 30});

  REQUIRE(in_header.message == "damaged PNG: the checksum of chunk IHDR is wrong");
  REQUIRE(in_exif.message == "damaged PNG: the checksum of chunk eXIf is wrong");
  std::mt19937 random(3);
  check_cut_boxes(decode_png, data, pixels, random);
}

TEST_CASE("a PNG that was cut off, or is of another size, is an error for every box", "[backend]") {
  const File png = make_png({.pixels = make_pixels(64, 64, 3, 1)});
  for (std::size_t size = 0; size + 20 < png.size(); size += 97) {
    const File cut(png.begin(), png.begin() + static_cast<std::ptrdiff_t>(size));
    CAPTURE(size);
    REQUIRE(error_of(decode_png, cut, {64, 64}).code == Code::kInvalid);
  }

  REQUIRE(error_of(decode_png, png, {65, 64}).code == Code::kInvalid);
}

TEST_CASE("decoding a PNG stops at the deadline", "[backend]") {
  const File png = make_png({.pixels = make_pixels(64, 64, 3, 1)});
  PixelBuffer buffer;

  const Result<kernels::U8View> part = decode_png({png, {64, 64}, {0, 0, 64, 64}, Clock::now()}, buffer);

  REQUIRE_FALSE(part);
  REQUIRE(part.error().code == Code::kDeadline);
}

TEST_CASE("any box of a WebP has the pixels of the whole", "[backend]") {
  std::mt19937 random(4);
  for (int image = 0; image < 24; ++image) {
    const std::uint32_t channels = image % 2 == 0 ? 3 : 4;
    const Pixels pixels = make_pixels(1 + random() % 200, 1 + random() % 200, channels, random());
    const File webp =
        make_webp({.pixels = pixels, .lossless = image % 3 == 0, .quality = static_cast<float>(10 + 3 * image)});

    CAPTURE(image);
    check_cut_boxes(decode_webp, webp, decode_slowly(ImageFormat::kWebp, webp), random);
  }
}

// Lossless; grey, but for what `changed` does to its samples.
template <class Change>
File grey_webp(const Pixels& grey, std::uint32_t channels, Change&& changed) {
  Pixels pixels{grey.width, grey.height, channels, {}};
  for (const std::uint8_t level : grey.data) pixels.data.insert(pixels.data.end(), channels, level);
  changed(pixels.data);
  return make_webp({.pixels = pixels, .lossless = true});
}

TEST_CASE("indices of a lossless WebP are its grey", "[backend]") {
  std::mt19937 random(5);
  for (int image = 0; image < 8; ++image) {
    const Pixels grey = make_pixels(1 + random() % 200, 1 + random() % 200, 1, random());

    CAPTURE(image);
    check_cut_boxes(indices_by<decode_webp>, grey_webp(grey, 3, [](auto&) {}), grey, random);
  }
}

TEST_CASE("a WebP with a coloured pixel anywhere, with loss or transparency has no indices", "[backend]") {
  const Pixels grey = make_pixels(40, 30, 1, 1);
  const auto told = [](const File& file) { return error_of(indices_by<decode_webp>, file, {40, 30}).message; };

  for (const std::size_t at : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{40 * 30 * 3 - 1}})
    REQUIRE(told(grey_webp(grey, 3, [&](auto& samples) {
              samples[at] ^= 1;
            })).starts_with("has no indices (recipe.indices): store it as "));
  REQUIRE(told(grey_webp(grey, 4, [](auto&) {})) ==
          "a WebP with transparency, of which no indices are read: store it without");
  for (const std::uint32_t channels : {3U, 4U})
    REQUIRE(told(make_webp({.pixels = make_pixels(40, 30, channels, 1)})) ==
            "a lossy WebP, whose levels are not exact: make it anew, lossless or as PNG");
}

TEST_CASE("a WebP that was cut off, or is of another size, is an error for every box", "[backend]") {
  for (const bool lossless : {false, true}) {
    const File webp = make_webp({.pixels = make_pixels(64, 64, 3, 1), .lossless = lossless});
    for (std::size_t size = 0; size < webp.size(); size += 61) {
      const File cut(webp.begin(), webp.begin() + static_cast<std::ptrdiff_t>(size));
      CAPTURE(size);
      REQUIRE(error_of(decode_webp, cut, {64, 64}).code == Code::kInvalid);
    }

    REQUIRE(error_of(decode_webp, webp, {64, 63}).code == Code::kInvalid);
  }
}

}  // namespace millrace
