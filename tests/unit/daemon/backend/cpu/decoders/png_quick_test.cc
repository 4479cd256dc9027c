// PNG by our own decoder against libspng: pixels and verdicts are the same, and ordinary files are ours.
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>

#include "daemon/backend/cpu/decoders/png/png_decoder.h"
#include "daemon/backend/cpu/decoders/png/png_quick_decoder.h"
#include "daemon/formats/probe.h"
#include "proto/base/sanitized.h"
#include "tests/support/host/limited_memory.h"
#include "tests/support/pictures/png_file.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"

namespace millrace {

using File = std::vector<std::byte>;

namespace {

using namespace std::string_literals;

struct Kind {
  unsigned colour, depth, samples;
};
constexpr Kind kKinds[] = {{0, 1, 1}, {0, 2, 1}, {0, 4, 1}, {0, 8, 1}, {0, 16, 1}, {2, 8, 3}, {2, 16, 3}, {3, 1, 1},
                           {3, 2, 1}, {3, 4, 1}, {3, 8, 1}, {4, 8, 2}, {4, 16, 2}, {6, 8, 4}, {6, 16, 4}};

// Rows of bytes that are anything, with filters that are.
std::string random_rows(const Kind& kind, kernels::Size size, std::mt19937& random) {
  const std::size_t bytes = (static_cast<std::size_t>(size.width) * kind.samples * kind.depth + 7) / 8;
  std::string rows;
  for (int y = 0; y < size.height; ++y) {
    rows += static_cast<char>(random() % 5);
    const bool noise = random() % 3 == 0;
    for (std::size_t i = 0; i < bytes; ++i) rows += static_cast<char>(noise ? random() : random() % 4 * (random() % 3));
  }
  return rows;
}

// The image data in chunks of random sizes.
File png_of(const Kind& kind, kernels::Size size, const std::string& data, std::mt19937& random) {
  std::vector<PngPart> parts{{"IHDR", png_header(static_cast<unsigned>(size.width), static_cast<unsigned>(size.height),
                                                 kind.depth, kind.colour)}};
  std::string palette;
  for (unsigned i = 0; i < 3 * (random() % 256 + 1); ++i) palette += static_cast<char>(random());
  if (kind.colour == 3) parts.push_back({"PLTE", palette});
  const std::size_t most = random() % 2 == 0 ? data.size() + 1 : random() % 5000 + 1;
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t count = random() % most + 1;
    parts.push_back({"IDAT", data.substr(at, count)});
    at += count;
  }
  if (random() % 3 == 0) parts.push_back({"IDAT", "more"});
  if (random() % 3 == 0) parts.push_back({"tEXt", "a"});
  parts.push_back({"IEND", ""});
  return make_png_of(parts);
}

DecodeRequest quick_request_for(const File& file, kernels::Size size, const kernels::Box& box,
                                kernels::Target target = kernels::best_target()) {
  return {.bytes_untrusted = file,
          .stored = size,
          .box = box,
          .deadline = Clock::now() + std::chrono::minutes(5),
          .target = target};
}

bool same_as(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.size() != b.size() || a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (!std::equal(a.row(y), a.row(y) + a.width * a.channels, b.row(y))) return false;
  }
  return true;
}

// Whether both ways say the same.
bool agree(const File& file, kernels::Size size, const kernels::Box& box) {
  PixelBuffer buffer, other_buffer;
  const DecodeRequest request = quick_request_for(file, size, box);
  const auto pixels = decode_png(request, buffer), others = decode_png_by_libspng(request, other_buffer);
  if (!pixels || !others)
    return !pixels && !others && pixels.error().code == others.error().code &&
           pixels.error().message == others.error().message;
  return same_as(*pixels, *others);
}

bool is_ours(const File& file, kernels::Size size) {
  PixelBuffer buffer;
  const auto decoded = decode_png_quickly(quick_request_for(file, size, {0, 0, size.width, size.height}),
                                          *PngChunks::open(file), buffer);
  return decoded.has_value() && decoded->has_value();
}

kernels::Box random_box(kernels::Size size, std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const int left = below(size.width), top = below(size.height);
  return {left, top, below(size.width - left) + 1, below(size.height - top) + 1};
}

}  // namespace

TEST_CASE("PNG files of every kind are ours, with libspng's pixels in every box", "[backend]") {
  std::mt19937 random(1);
  for (const Kind& kind : kKinds) {
    for (int round = 0; round < (kSanitized ? 8 : 40); ++round) {
      const kernels::Size size{static_cast<int>(random() % (round == 0 ? 3000 : 90)) + 1,
                               static_cast<int>(random() % 60) + 1};
      const File file =
          png_of(kind, size, deflated(random_rows(kind, size, random), static_cast<int>(random() % 10)), random);

      CAPTURE(kind.colour, kind.depth, size.width, size.height);
      REQUIRE(is_ours(file, size));
      REQUIRE(agree(file, size, {0, 0, size.width, size.height}));
      REQUIRE(agree(file, size, random_box(size, random)));
    }
  }
}

TEST_CASE("indices of a palette are its samples, and grey stays grey", "[backend]") {
  std::mt19937 random(3);
  std::string palette;  // whose red is the index
  for (int i = 0; i < 256; ++i) palette += {static_cast<char>(i), static_cast<char>(random()), '\x07'};
  for (const unsigned depth : {1U, 2U, 4U, 8U}) {
    const Kind kind{3, depth, 1};
    const kernels::Size size{131, 37};
    const std::string rows = deflated(random_rows(kind, size, random));
    const std::string header = png_header(131, 37, depth, 3);
    const std::string own = palette.substr(0, std::size_t{3} << depth);
    const File file = make_png_of({{"IHDR", header}, {"PLTE", own}, {"IDAT", rows}, {"IEND", ""}});
    PixelBuffer colour_buffer, index_buffer, other_buffer;
    const DecodeRequest request = quick_request_for(file, size, {3, 5, 100, 30});
    DecodeRequest as_indices = request;
    as_indices.indices = true;

    const auto colours = decode_png(request, colour_buffer), indices = decode_png(as_indices, index_buffer);
    const auto others = decode_png_by_libspng(as_indices, other_buffer);

    CAPTURE(depth);
    REQUIRE(indices);
    REQUIRE(indices->channels == 1);
    for (int y = 0; y < 30; ++y) {
      for (int x = 0; x < 100; ++x) REQUIRE(indices->row(y)[x] == colours->row(y)[3 * x]);
    }
    REQUIRE(others.has_value() == (depth == 8));
    if (others) REQUIRE(same_as(*indices, *others));
  }
  const kernels::Size size{31, 17};
  const File grey = png_of({0, 8, 1}, size, deflated(random_rows({0, 8, 1}, size, random)), random);
  PixelBuffer buffer, same_buffer;
  DecodeRequest as_indices = quick_request_for(grey, size, {0, 0, 31, 17});
  as_indices.indices = true;
  REQUIRE(same_as(*decode_png(as_indices, buffer),
                  *decode_png(quick_request_for(grey, size, {0, 0, 31, 17}), same_buffer)));
}

TEST_CASE("grey of 1 or 16 bits has no indices, whichever decoder has it", "[backend]") {
  std::mt19937 random(4);
  const kernels::Size size{31, 17};
  for (const unsigned depth : {1U, 16U}) {
    const Kind kind{0, depth, 1};
    const File file = png_of(kind, size, deflated(random_rows(kind, size, random)), random);
    DecodeRequest request = quick_request_for(file, size, {0, 0, 31, 17});
    PixelBuffer buffer;
    REQUIRE(decode_png(request, buffer));
    request.indices = true;
    for (const auto& refused : {decode_png(request, buffer), decode_png_by_libspng(request, buffer)}) {
      REQUIRE_FALSE(refused);
      REQUIRE(refused.error().code == Code::kInvalid);
      REQUIRE(refused.error().message.find("store it in 8 bits") != std::string::npos);
    }
  }
}

TEST_CASE("every target makes the same pixels of a PNG", "[backend]") {
  std::mt19937 random(2);
  for (const Kind& kind : kKinds) {
    const kernels::Size size{307, 41};
    const File file = png_of(kind, size, deflated(random_rows(kind, size, random)), random);
    PixelBuffer expected_buffer;
    const auto expected = decode_png_by_libspng(quick_request_for(file, size, {3, 5, 300, 30}), expected_buffer);
    for (const kernels::Target target : kernels::available_targets()) {
      PixelBuffer buffer;

      const auto pixels =
          decode_png_quickly(quick_request_for(file, size, {3, 5, 300, 30}, target), *PngChunks::open(file), buffer);

      CAPTURE(kind.colour, kind.depth, name_of(target));
      REQUIRE(same_as(**pixels, *expected));
    }
  }
}

TEST_CASE("rows wider than what is inflated at a time are ours, too", "[backend]") {
  std::mt19937 random(3);
  for (const Kind& kind : {Kind{6, 16, 4}, Kind{2, 8, 3}, Kind{0, 1, 1}}) {
    const kernels::Size size{60000, 5};
    const File file = png_of(kind, size, deflated(random_rows(kind, size, random)), random);

    REQUIRE(is_ours(file, size));
    REQUIRE(agree(file, size, {100, 1, 59000, 3}));
  }
}

TEST_CASE("a PNG that is damaged anywhere has libspng's verdict and pixels", "[backend]") {
  std::mt19937 random(4);
  int pictures = 0, errors = 0;
  for (int round = 0; round < (kSanitized ? 300 : 4000); ++round) {
    const Kind& kind = kKinds[random() % std::size(kKinds)];
    const kernels::Size size{static_cast<int>(random() % 50) + 1, static_cast<int>(random() % 40) + 1};
    std::string rows = random_rows(kind, size, random);
    if (random() % 8 == 0) rows[random() % size.height * (rows.size() / static_cast<std::size_t>(size.height))] = 5;
    if (random() % 8 == 0) rows += "more rows";
    if (random() % 8 == 0) rows.resize(rows.size() - 1);
    std::string data = deflated(rows, static_cast<int>(random() % 10));
    if (random() % 3 == 0) data.resize(data.size() - random() % std::min<std::size_t>(data.size(), 9));
    File file = png_of(kind, size, data, random);
    for (unsigned flips = random() % 3; flips > 0; --flips) {
      const std::size_t bit = random() % (8 * (file.size() - 33)) + 8 * 33;
      file[bit / 8] ^= std::byte{1} << bit % 8;
    }
    if (random() % 4 == 0) file.resize(file.size() - random() % 40);
    PixelBuffer buffer;

    CAPTURE(round, kind.colour, kind.depth, size.width, size.height);
    REQUIRE(agree(file, size, {0, 0, size.width, size.height}));
    REQUIRE(agree(file, size, random_box(size, random)));
    ++(decode_png(quick_request_for(file, size, {0, 0, 1, 1}), buffer) ? pictures : errors);
  }
  REQUIRE((pictures > 50 && errors > 50));
}

TEST_CASE("a PNG of blocks without end in which nothing is ends at the deadline", "[backend]") {
  // Blocks of fixed codes that end at once: a bit 0, then the type, then the end. Four of them are five bytes.
  std::string blocks;
  for (int i = 0; i < (1 << 18); ++i) blocks += "\x02\x08\x20\x80\x00"s;
  const File file = make_png_of({{"IHDR", png_header(1, 1, 8, 0)}, {"IDAT", "\x78\x9C" + blocks}, {"IEND", ""}});
  const auto verdict_by = [&](Clock::time_point deadline) {
    PixelBuffer buffer;
    return decode_png({file, {1, 1}, {0, 0, 1, 1}, deadline}, buffer).error();
  };

  REQUIRE(verdict_by(Clock::now() + std::chrono::milliseconds(1)).code == Code::kDeadline);
  REQUIRE(verdict_by(Clock::now() + std::chrono::minutes(5)).code == Code::kInvalid);
}

TEST_CASE("interlaced PNG files are libspng's", "[backend]") {
  const File file = make_png_of({{"IHDR", png_header(1, 1, 8, 0, 1)}, {"IDAT", deflated("\0\x05"s)}, {"IEND", ""}});

  REQUIRE(!is_ours(file, {1, 1}));
  REQUIRE(agree(file, {1, 1}, {0, 0, 1, 1}));
}

TEST_CASE("a PNG of every kind decodes within what its header was charged for", "[backend]") {
  if (kSanitized) return skip_loudly("a decoder short of memory: a sanitizer needs memory of its own");
  std::mt19937 random(5);
  for (const Kind& kind : kKinds) {
    for (const kernels::Size size : {kernels::Size{1, 1}, {40, 500}, {30000, 9}}) {
      const File file = png_of(kind, size, deflated(random_rows(kind, size, random)), random);
      const auto info = probe_image(file, SampleLimits{}, UseOrientation::kNo);
      const auto pixels = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3;

      const int outcome = with_limited_memory(info->codec.needed.count + pixels, [&] {
        PixelBuffer buffer;
        return decode_png(quick_request_for(file, size, {0, 0, size.width, size.height}), buffer) ? 1 : 2;
      });

      CAPTURE(kind.colour, kind.depth, size.width, size.height);
      REQUIRE(outcome == 1);
    }
  }
}

}  // namespace millrace
