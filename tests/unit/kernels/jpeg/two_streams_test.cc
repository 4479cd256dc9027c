// Two streams of one image where the second is led astray: it may cost time, never blocks, and never the image.
#include <algorithm>

#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using kernels::Target;
using kernels::jpeg::Decoder;
using kernels::jpeg::Streams;

JpegStream plain_stream(int width, int height, int components) {
  JpegStream stream{.width = width, .height = height};
  for (int i = 0; i < components; ++i) stream.components.push_back({.id = static_cast<std::uint8_t>(i + 1)});
  stream.quant[0].emplace().values.fill(1);
  stream.blocks.resize(mcu_count(stream) * static_cast<std::size_t>(blocks_in_mcu(stream)));
  return stream;
}

// Every decoder has the stream's blocks, all of them and any first part. The data is worth two streams.
void check_taken(const JpegStream& stream, std::mt19937& random) {
  const JpegFile file = write_jpeg(stream);
  REQUIRE(file.end - file.scan > 12000);
  for (const auto& decoder : decoders()) {
    for (int part = 0; part < 3; ++part) {
      const std::size_t count = part == 0 ? stream.blocks.size() : 1 + random() % stream.blocks.size();
      const auto blocks = decode_blocks(*decoder, file.bytes, count);
      CAPTURE(count, stream.blocks.size());
      REQUIRE(blocks);
      REQUIRE(std::equal(blocks->begin(), blocks->end(), stream.blocks.begin(),
                         stream.blocks.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

}  // namespace

TEST_CASE("a second stream that never comes into step leaves the image to the first", "[kernels]") {
  std::mt19937 random(51);
  // Eight bits a block whatever is in it: begun at a byte, the second stream finds every block's end, and takes one
  // component for another for ever, unless the byte's number is a multiple of three by chance.
  JpegStream stream = plain_stream(1203, 803, 3);
  stream.dc[0] = flat_code(4, {0, 1, 2});  // 0 alone is used
  stream.ac[0] = flat_code(4, {0x00, 0x01});
  check_taken(stream, random);

  // Seven bits a block, so that it is in the middle of one, too.
  stream.dc[0] = flat_code(3, {0, 1, 2});
  check_taken(stream, random);
}

TEST_CASE("a second stream that comes into step late, or for a moment only, gives the same blocks", "[kernels]") {
  std::mt19937 random(52);
  for (int i = 0; i < rounds(6); ++i) {
    JpegStream stream = plain_stream(1400 + below(random, 300), 800 + below(random, 200), i % 3 == 0 ? 1 : 3);
    const int length = 3 + i % 4;
    stream.dc[0] = flat_code(length, {0, 1, 2, 3, 4});
    stream.ac[0] = flat_code(8 - i % 2 - length, {0x00});  // most blocks take 8 bits, or 7
    const unsigned seldom = 1 + static_cast<unsigned>(below(random, 3000));
    for (JpegBlock& block : stream.blocks) {
      if (random() % seldom == 0) block[0] = static_cast<std::int16_t>(below(random, 31) - 15);
    }
    CAPTURE(i, seldom);
    check_taken(stream, random);
  }
}

TEST_CASE("a second stream that meets codes which do not exist does not cost the image", "[kernels]") {
  std::mt19937 random(53);
  for (int i = 0; i < rounds(10); ++i) {
    JpegStream stream = draw_jpeg({.range = JpegDraw::Range::kWild,
                                   .width = 300 + below(random, 100),
                                   .height = 300,
                                   .density = 80 + 60 * (i % 5),
                                   .restart_interval = 0},
                                  random);
    stream.style.odd_ends = false;  // so that one length is enough for all symbols
    const JpegHistogram histogram = count_symbols(stream);
    for (const JpegComponent& component : stream.components) {  // most codes of such lengths do not exist
      const auto dc = static_cast<std::size_t>(component.dc), ac = static_cast<std::size_t>(component.ac);
      stream.dc[dc] = random_code(histogram.dc[dc], 15, random);
      std::vector<std::uint8_t> symbols;
      for (int symbol = 0; symbol < 256; ++symbol) {
        if (histogram.ac[ac][static_cast<std::size_t>(symbol)] > 0)
          symbols.push_back(static_cast<std::uint8_t>(symbol));
      }
      stream.ac[ac] = flat_code(9 + i % 8, symbols);
    }
    CAPTURE(i);
    check_taken(stream, random);
  }
}

TEST_CASE("blocks of two bits, more of them than a stream keeps, are decoded by two streams", "[kernels]") {
  std::mt19937 random(54);
  for (const int components : {1, 3}) {
    JpegStream stream = plain_stream(2400, 1800, components);
    stream.dc[0] = flat_code(1, {0});
    stream.ac[0] = flat_code(1, {0});
    check_taken(stream, random);
  }
}

TEST_CASE("full blocks, of which few fit between two streams, are decoded by two", "[kernels]") {
  std::mt19937 random(55);
  for (int i = 0; i < rounds(4); ++i)
    check_taken(
        draw_jpeg(
            {.range = JpegDraw::Range::kWild, .width = 260, .height = 200, .density = 1000, .restart_interval = 0},
            random),
        random);
}

TEST_CASE("blocks asked for that end where two streams meet are handed over, and none behind them", "[kernels]") {
  std::mt19937 random(57);
  JpegStream stream = plain_stream(1600, 1280, 1);
  stream.dc[0] = flat_code(3, {0, 1, 2, 3, 4});
  stream.ac[0] = flat_code(4, {0, 1, 2, 3, 4, 5});
  const std::size_t half = stream.blocks.size() / 2;
  for (std::size_t i = 0; i < stream.blocks.size(); ++i) {  // three times the bits in the second half
    JpegBlock& block = stream.blocks[i];
    block[0] = static_cast<std::int16_t>(below(random, 31) - 15);
    for (std::size_t k = 1 + random() % (i < half ? 4 : 12); k > 0; --k)
      block[k] = static_cast<std::int16_t>(1 + below(random, 31));
  }
  const JpegFile file = write_jpeg(stream);
  for (int i = 0; i < rounds(50); ++i) {
    const std::size_t count = half / 2 + random() % (half / 2);
    for (const auto& decoder : decoders()) {
      const auto blocks = decode_blocks(*decoder, file.bytes, count);
      CAPTURE(count);
      REQUIRE(blocks);
      REQUIRE(std::equal(blocks->begin(), blocks->end(), stream.blocks.begin(),
                         stream.blocks.begin() + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

TEST_CASE("damage behind the blocks asked for costs neither them nor the fast path", "[kernels]") {
  std::mt19937 random(56);
  int taken = 0, tried = 0;
  for (int i = 0; i < rounds(40); ++i) {
    const JpegStream stream = draw_jpeg({.width = 250, .height = 200, .density = 300, .restart_interval = 0}, random);
    JpegFile file = write_jpeg(stream);
    const std::size_t middle = file.scan + (file.end - file.scan) / 2;
    for (std::size_t at = middle; at < file.end; ++at) {
      if (random() % 20 == 0) file.bytes[at] = static_cast<std::byte>(random() % 255);
    }
    for (std::size_t at = middle - 1; at < file.end; ++at) {  // no markers
      if (file.bytes[at] == std::byte{0xFF}) file.bytes[at + 1] = std::byte{0};
    }
    file.bytes[file.end] = std::byte{0xFF};
    file.bytes[file.end + 1] = std::byte{0xD9};
    const std::size_t count = stream.blocks.size() / 4;
    for (const auto& decoder : decoders()) {
      const auto blocks = decode_blocks(*decoder, file.bytes, count);
      ++tried;
      if (!blocks) continue;
      ++taken;
      REQUIRE(std::equal(blocks->begin(), blocks->end(), stream.blocks.begin()));
    }
  }
  REQUIRE(taken > tried * 9 / 10);
}

}  // namespace millrace
