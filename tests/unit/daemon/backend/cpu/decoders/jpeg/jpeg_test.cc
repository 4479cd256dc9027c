// The JPEG decoder of the CPU backend: cropped and skipped decoding against whole, and the verdicts on bad files.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "tests/conformance/slow_path.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using Bytes8 = std::vector<std::byte>;

DecodeRequest jpeg_request_for(const Bytes8& jpeg, kernels::Size size, const kernels::Box& box) {
  return {jpeg, size, box, Clock::now() + std::chrono::minutes(5)};
}

kernels::Box random_jpeg_box(std::mt19937& random, kernels::Size size) {
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  const int left = below(size.width), top = below(size.height);
  return {left, top, 1 + below(size.width - left), 1 + below(size.height - top)};
}

std::vector<std::uint8_t> bytes_of(const kernels::U8View& view) {
  std::vector<std::uint8_t> bytes;
  for (int y = 0; y < view.height; ++y)
    bytes.insert(bytes.end(), view.row(y), view.row(y) + view.width * view.channels);
  return bytes;
}

kernels::U8View view_of(const Pixels& pixels) {
  return {pixels.data.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
          static_cast<int>(pixels.channels), static_cast<std::ptrdiff_t>(pixels.width) * pixels.channels};
}

// `boxes` random boxes of `jpeg` are what `full` has there. How many of them were refused as damaged, where that may
// be.
int check_jpeg_boxes(const Bytes8& jpeg, const kernels::U8View& full, int boxes, std::mt19937& random,
                     bool may_be_damaged = false) {
  PixelBuffer buffer;
  int refused = 0;
  for (int i = 0; i < boxes; ++i) {
    const kernels::Box box = i == 0 ? whole(full.size()) : random_jpeg_box(random, full.size());
    const Result<kernels::U8View> part = decode_jpeg(jpeg_request_for(jpeg, full.size(), box), buffer);
    CAPTURE(full.width, full.height, box.left, box.top, box.width, box.height);
    if (!part && may_be_damaged && box != whole(full.size())) {
      REQUIRE(part.error().code == Code::kInvalid);
      ++refused;
      continue;
    }
    REQUIRE(part);
    REQUIRE(bytes_of(*part) == bytes_of(full.crop(box)));
  }
  return refused;
}

std::size_t find(const Bytes8& bytes, int first, int second) {
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == std::byte(first) && bytes[i + 1] == std::byte(second)) return i;
  }
  return bytes.size();
}

Error jpeg_error_of(const Bytes8& jpeg, kernels::Size size) {
  PixelBuffer buffer;
  const Result<kernels::U8View> part = decode_jpeg(jpeg_request_for(jpeg, size, {0, 0, 1, 1}), buffer);
  REQUIRE_FALSE(part);
  return part.error();
}

struct ChromaSampling {
  int channels, h, v;
};

}  // namespace

TEST_CASE("any box of a JPEG has the pixels of the whole, whatever the sampling", "[backend]") {
  std::mt19937 random(1);
  for (const ChromaSampling s : {ChromaSampling{1, 1, 1},
                                 {3, 1, 1},
                                 {3, 2, 1},
                                 {3, 1, 2},
                                 {3, 2, 2},
                                 {3, 4, 1},
                                 {3, 1, 4},
                                 {3, 4, 2},
                                 {3, 2, 4}}) {
    for (int image = 0; image < 12; ++image) {
      const std::uint32_t width = 1 + random() % (image < 4 ? 24 : 300), height = 1 + random() % (image < 4 ? 24 : 300);
      const Bytes8 jpeg =
          make_jpeg({.pixels = make_pixels(width, height, static_cast<std::uint32_t>(s.channels), random()),
                     .quality = 60 + image * 3,
                     .h_samp = s.h,
                     .v_samp = s.v,
                     .progressive = image % 5 == 4,
                     .restart_interval = image % 3 == 0 ? 1 + static_cast<int>(random() % 9) : 0,
                     .optimise = image % 2 == 0});
      const Pixels full = decode_slowly(ImageFormat::kJpeg, jpeg);

      CAPTURE(s.channels, s.h, s.v, image);
      check_jpeg_boxes(jpeg, view_of(full), 30, random);
    }
  }
}

TEST_CASE("a grey JPEG that declares sampling factors is the same picture", "[backend]") {
  std::mt19937 random(2);
  Bytes8 jpeg = make_jpeg({.pixels = make_pixels(83, 61, 1, 5)});
  const Pixels full = decode_slowly(ImageFormat::kJpeg, jpeg);

  jpeg[find(jpeg, 0xFF, 0xC0) + 11] = std::byte{0x22};

  check_jpeg_boxes(jpeg, view_of(full), 30, random);
}

TEST_CASE("any box of a damaged JPEG that still decodes has the pixels of the whole, or is an error", "[backend]") {
  std::mt19937 random(3);
  int decoded = 0, refused = 0;
  for (int image = 0; image < 300; ++image) {
    const bool subsampled = image % 2 == 0;
    Bytes8 jpeg = make_jpeg({.pixels = make_pixels(120, 90, 3, random()),
                             .h_samp = subsampled ? 2 : 1,
                             .v_samp = subsampled ? 2 : 1,
                             .progressive = image % 7 == 6,
                             .restart_interval = image % 3 == 0 ? 4 : 0});
    const std::size_t data = find(jpeg, 0xFF, 0xDA) + 14;
    for (int flips = 0; flips < 3; ++flips)
      jpeg[data + random() % (jpeg.size() - data - 2)] ^= std::byte(1 << random() % 8);
    PixelBuffer buffer;
    const kernels::Size size{120, 90};
    const Result<kernels::U8View> full = decode_jpeg(jpeg_request_for(jpeg, size, whole(size)), buffer);
    if (!full) continue;
    ++decoded;

    CAPTURE(image);
    refused += check_jpeg_boxes(jpeg, *full, 8, random, true);
  }
  REQUIRE(decoded > 100);
  REQUIRE(refused > 100);
  REQUIRE(refused < 7 * decoded);
}

TEST_CASE("a JPEG that was cut off is an error for every box", "[backend]") {
  for (const bool progressive : {false, true}) {
    Bytes8 jpeg = make_jpeg({.pixels = make_pixels(100, 100, 3, 1), .progressive = progressive});
    while (jpeg.size() > 3) {
      jpeg.resize(jpeg.size() - std::max<std::size_t>(1, jpeg.size() / 9));

      const Error error = jpeg_error_of(jpeg, {100, 100});

      CAPTURE(jpeg.size(), error.message);
      REQUIRE(error.code == Code::kInvalid);
    }
  }
}

TEST_CASE("a JPEG of another size than its header was read to have is an error", "[backend]") {
  const Bytes8 jpeg = make_jpeg({.pixels = make_pixels(40, 30, 3, 1)});

  const Error error = jpeg_error_of(jpeg, {40, 31});

  REQUIRE(error.code == Code::kInvalid);
  REQUIRE(error.message == "the decoder finds 40x30 pixels where the header says 40x31");
}

TEST_CASE("12-bit and lossless JPEG files are unsupported, not damaged", "[backend]") {
  const Bytes8 jpeg = make_jpeg({.pixels = make_pixels(40, 30, 3, 1)});
  const std::size_t frame = find(jpeg, 0xFF, 0xC0);
  Bytes8 deep = jpeg, lossless = jpeg;

  deep[frame + 4] = std::byte{12};
  lossless[frame + 1] = std::byte{0xC3};

  REQUIRE(jpeg_error_of(deep, {40, 30}).code == Code::kUnsupported);
  REQUIRE(jpeg_error_of(lossless, {40, 30}).code == Code::kUnsupported);
}

TEST_CASE("a JPEG of very many scans is refused instead of decoded for hours", "[backend]") {
  const Bytes8 jpeg = make_jpeg({.pixels = make_pixels(64, 64, 1, 1), .progressive = true});
  std::size_t last_scan = 0;
  for (std::size_t i = 0; i + 1 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xDA}) last_scan = i;
  }
  const Bytes8 scan(jpeg.begin() + static_cast<std::ptrdiff_t>(last_scan), jpeg.end() - 2);
  Bytes8 many(jpeg.begin(), jpeg.end() - 2);
  for (int i = 0; i < 600; ++i) many.insert(many.end(), scan.begin(), scan.end());
  many.insert(many.end(), jpeg.end() - 2, jpeg.end());

  const Error error = jpeg_error_of(many, {64, 64});

  REQUIRE(error.code == Code::kInvalid);
  REQUIRE(error.message.find("scans") != std::string::npos);
}

TEST_CASE("decoding a JPEG stops at the deadline", "[backend]") {
  for (const bool progressive : {false, true}) {
    const Bytes8 jpeg = make_jpeg({.pixels = make_pixels(600, 600, 3, 1), .progressive = progressive});
    PixelBuffer buffer;

    const Result<kernels::U8View> part = decode_jpeg({jpeg, {600, 600}, {0, 300, 600, 300}, Clock::now()}, buffer);

    REQUIRE_FALSE(part);
    REQUIRE(part.error().code == Code::kDeadline);
  }
}

}  // namespace millrace
