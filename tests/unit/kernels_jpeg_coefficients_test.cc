// Our entropy decoder against coefficients that are known: those that a stream was written from, and libjpeg-turbo's.
#include <algorithm>

#include "tests/support/jpeg_coefficients.h"
#include "tests/support/random_jpeg.h"
#include "tests/support/rounds.h"
#include "tests/support/test_data.h"
#include "tests/unit/jpeg_rig.h"

namespace millrace {
namespace {

// Every decoder gives these blocks for this file.
void check_blocks(ByteView file, const std::vector<JpegBlock>& expected) {
  for (std::size_t i = 0; i < decoders().size(); ++i) {
    const auto blocks = decode_blocks(*decoders()[i], file);
    CAPTURE(i, file.size());
    REQUIRE(blocks);
    REQUIRE((*blocks == expected));
  }
}

void check_stream(const JpegStream& stream) {
  const JpegFile file = write_jpeg(stream);
  check_blocks(file.bytes, stream.blocks);
  const auto coefficients = read_jpeg_coefficients(file.bytes);
  REQUIRE(coefficients);
  REQUIRE(coefficients->warnings == 0);
  REQUIRE((in_scan_order(*coefficients) == stream.blocks));
}

// Chroma of one or two columns is libjpeg's own affair.
bool is_plain(const JpegStream& stream) {
  return stream.components.size() == 1 || stream.components[0].h == 1 || stream.width > 4;
}

JpegDraw draw_of(std::mt19937& random, int width, int height) {
  return {.range = below(random, 2) == 0 ? JpegDraw::Range::kWild : JpegDraw::Range::kOrdinary,
          .width = width,
          .height = height};
}

// A grey stream with every difference and every run and value that can be coded, their ranges' ends among them.
std::vector<JpegBlock> every_symbol(int most_dc, int most_ac) {
  std::vector<JpegBlock> blocks;
  for (int size = 0; size <= most_dc; ++size) {
    const int least = size == 0 ? 0 : 1 << (size - 1), most = (1 << size) - 1;
    for (const int value : {least, most, -least, -most}) blocks.push_back({static_cast<std::int16_t>(value)});
  }
  for (int size = 1; size <= most_ac; ++size) {
    for (std::size_t run = 0; run < 63; ++run) {
      const int least = 1 << (size - 1), most = (1 << size) - 1;
      for (const int value : {least, most, -least, -most}) {
        JpegBlock block{};
        block[1 + run] = static_cast<std::int16_t>(value);
        blocks.push_back(block);
      }
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("random streams have the coefficients that were coded", "[kernels]") {
  std::mt19937 random(21);
  int at_byte_end = 0;
  for (int i = 0; i < rounds(250); ++i) {
    const JpegStream stream = draw_jpeg(draw_of(random, 0, 0), random);
    if (!is_plain(stream)) continue;
    CAPTURE(i);
    check_stream(stream);
    at_byte_end += write_jpeg(stream).padding_bits == 0;
  }
  REQUIRE(at_byte_end > 5);  // the last block's last bit is the data's
}

TEST_CASE("random streams of any shape have the coefficients that were coded", "[kernels]") {
  std::mt19937 random(22);
  constexpr kernels::Size kSizes[] = {{1, 1}, {8, 8}, {9, 8}, {17, 33}, {4097, 3}, {3, 4097}, {640, 24}, {24, 640}};
  for (const kernels::Size size : kSizes) {
    for (int i = 0; i < rounds(4); ++i) {
      const JpegStream stream = draw_jpeg(draw_of(random, size.width, size.height), random);
      if (!is_plain(stream)) continue;
      CAPTURE(size.width, size.height, i);
      check_stream(stream);
    }
  }
}

TEST_CASE("random streams long enough for two have the coefficients that were coded", "[kernels]") {
  std::mt19937 random(23);
  for (int i = 0; i < rounds(24); ++i) {
    JpegDraw draw = draw_of(random, 150 + below(random, 300), 150 + below(random, 200));
    draw.density = i % 3 == 0 ? 500 : i % 3 == 1 ? 80 : 5;
    CAPTURE(i);
    check_stream(draw_jpeg(draw, random));
  }
}

TEST_CASE("every difference, run and value that can be coded is decoded", "[kernels]") {
  std::mt19937 random(24);
  for (const bool usual : {true, false}) {
    JpegStream stream{.components = {{}}};
    stream.quant[0].emplace().values.fill(1);
    stream.blocks = usual ? every_symbol(11, 10) : every_symbol(15, 15);
    stream.width = 8 * static_cast<int>(stream.blocks.size());
    stream.height = 8;
    for (int i = 0; i < (usual ? 1 : rounds(20)); ++i) {
      const JpegHistogram histogram = count_symbols(stream);
      stream.dc[0] = usual    ? default_dc_code()
                     : i == 0 ? optimal_code(histogram.dc[0])
                              : random_code(histogram.dc[0], 15, random);
      stream.ac[0] = usual    ? default_ac_code()
                     : i == 0 ? optimal_code(histogram.ac[0])
                              : random_code(histogram.ac[0], 255, random);
      CAPTURE(usual, i);
      check_stream(stream);
      std::shuffle(stream.blocks.begin(), stream.blocks.end(), random);
    }
  }
}

TEST_CASE("a scan that lacks a needed bit is not decoded here", "[kernels]") {
  std::mt19937 random(25);
  int checked = 0;
  for (int i = 0; i < rounds(150); ++i) {
    const JpegStream stream = draw_jpeg(draw_of(random, 0, 0), random);
    const JpegFile file = write_jpeg(stream);
    if (!is_plain(stream) || file.end == file.scan) continue;
    File cut = file.bytes;
    const std::size_t end = file.end - (file.bytes[file.end - 2] == std::byte{0xFF} ? 2 : 1);  // with its stuffing
    cut.erase(cut.begin() + static_cast<std::ptrdiff_t>(end), cut.begin() + static_cast<std::ptrdiff_t>(file.end));
    for (const auto& decoder : decoders()) REQUIRE_FALSE(decode_blocks(*decoder, cut));
    ++checked;
  }
  REQUIRE(checked > 100);
}

TEST_CASE("the first blocks of a stream do not depend on those behind them", "[kernels]") {
  std::mt19937 random(26);
  for (int i = 0; i < rounds(30); ++i) {
    JpegDraw draw = draw_of(random, 120 + below(random, 200), 120 + below(random, 100));
    draw.density = 200 * (i % 4);
    const JpegStream stream = draw_jpeg(draw, random);
    const JpegFile file = write_jpeg(stream);
    for (const auto& decoder : decoders()) {
      const std::size_t count = 1 + random() % stream.blocks.size();
      const auto blocks = decode_blocks(*decoder, file.bytes, count);
      CAPTURE(i, count);
      REQUIRE(blocks);
      REQUIRE((*blocks == std::vector<JpegBlock>(stream.blocks.begin(),
                                                 stream.blocks.begin() + static_cast<std::ptrdiff_t>(count))));
    }
  }
}

TEST_CASE("real JPEG files have libjpeg-turbo's coefficients", "[kernels]") {
  for (const char* const name : {"photos", "jpeg-variants"}) {
    const auto folder = test_data(name);
    if (!folder) continue;
    int taken = 0;
    for (const auto& [file_name, file] : files_in(*folder)) {
      const auto header = kernels::jpeg::read_header(file_bytes(file));
      if (!header || std::int64_t{header->size.width} * header->size.height > 1 << 21) continue;
      const auto coefficients = read_jpeg_coefficients(file);
      CAPTURE(file_name);
      REQUIRE(coefficients);
      if (coefficients->warnings > 0) continue;
      check_blocks(file, in_scan_order(*coefficients));
      ++taken;
    }
    REQUIRE(taken > 0);
  }
}

}  // namespace millrace
