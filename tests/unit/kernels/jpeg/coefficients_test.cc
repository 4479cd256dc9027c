// Our entropy decoder against coefficients that are known: those that a stream was written from, and libjpeg-turbo's.
#include <algorithm>

#include "tests/support/jpeg/jpeg_coefficients.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

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

// The file without the last bytes of its scan, stuffing not counted.
File without_last(const JpegFile& file, std::size_t count) {
  File cut = file.bytes;
  std::size_t end = file.end;
  for (; count > 0 && end > file.scan; --count) {
    --end;
    if (end > file.scan && cut[end] == std::byte{0} && cut[end - 1] == std::byte{0xFF}) --end;
  }
  cut.erase(cut.begin() + static_cast<std::ptrdiff_t>(end), cut.begin() + static_cast<std::ptrdiff_t>(file.end));
  return cut;
}

// Two values that a packed table just holds, then an end of block and a difference that it does not.
JpegStream many_bits_at_a_time(int across, std::mt19937& random) {
  JpegStream stream{.width = 8 * across, .height = 8 * across, .components = {{}}};
  stream.quant[0].emplace().values.fill(1);
  stream.dc[0].emplace().symbols = {0, 15};
  stream.dc[0]->counts[14] = stream.dc[0]->counts[15] = 1;
  stream.ac[0].emplace().symbols = {9, 0};
  stream.ac[0]->counts[8] = stream.ac[0]->counts[15] = 1;
  stream.blocks.resize(static_cast<std::size_t>(across * across));
  for (JpegBlock& block : stream.blocks) {
    block[0] = static_cast<std::int16_t>((1 << 14) + below(random, 1 << 14));
    if (random() % 2 == 0) block[0] = static_cast<std::int16_t>(-block[0]);
    for (const std::size_t at : {1, 2}) block[at] = static_cast<std::int16_t>(256 + below(random, 256));
  }
  return stream;
}

enum class Impossible { kDifference, kCode, kRun };

// A grey stream whose block `at` cannot be: a code that its table lacks, or a run beyond the block. The header's tables
// are others than those that the scan was written with.
File with_impossible_block(JpegStream stream, std::size_t at, Impossible what) {
  JpegBlock& block = stream.blocks[at];
  block = {};
  if (what == Impossible::kDifference) block[0] = 1 << 10;
  if (what != Impossible::kDifference) std::fill_n(block.begin() + 1, 4, std::int16_t{1 << 9});
  stream.dc[0] = flat_code(8, {0, 1, 2, 11});
  stream.ac[0] = flat_code(8, {0x00, 0x01, 0x02, 0x0A});
  const JpegFile written = write_jpeg(stream);

  stream.blocks[at] = {};
  if (what == Impossible::kDifference) stream.dc[0] = flat_code(8, {0, 1, 2});
  if (what == Impossible::kCode) stream.ac[0] = flat_code(8, {0x00, 0x01, 0x02});
  if (what == Impossible::kRun) stream.ac[0]->symbols.back() = 0xFA;
  const JpegFile other = write_jpeg(stream);

  File file(other.bytes.begin(), other.bytes.begin() + static_cast<std::ptrdiff_t>(other.scan));
  file.insert(file.end(), written.bytes.begin() + static_cast<std::ptrdiff_t>(written.scan), written.bytes.end());
  return file;
}

JpegStream small_values(int across, std::mt19937& random) {
  JpegStream stream{.width = 8 * across, .height = 8 * across, .components = {{}}};
  stream.quant[0].emplace().values.fill(1);
  stream.blocks.resize(static_cast<std::size_t>(across * across));
  for (JpegBlock& block : stream.blocks) {
    for (auto i = random() % 40; i > 0; --i) block[i] = static_cast<std::int16_t>(random() % 2 == 0 ? 1 : -2);
    block[0] = static_cast<std::int16_t>(below(random, 7) - 3);
  }
  return stream;
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
  int checked = 0, large = 0;
  for (int i = 0; i < rounds(240); ++i) {
    const bool for_two = i % 3 == 0;
    JpegDraw draw = for_two ? draw_of(random, 100 + below(random, 200), 150) : draw_of(random, 0, 0);
    if (for_two) draw.density = 200 + below(random, 600);
    const JpegStream stream = draw_jpeg(draw, random);
    const JpegFile file = write_jpeg(stream);
    if (!is_plain(stream)) continue;
    CAPTURE(i);
    const File cut = without_last(file, for_two ? 1 + random() % 4 : 1);
    for (const auto& decoder : decoders()) REQUIRE_FALSE(decode_blocks(*decoder, cut));
    ++checked;
    large += file.end - file.scan > 12000;
  }
  REQUIRE(checked > rounds(150));
  REQUIRE(large > 20);
}

TEST_CASE("a scan of blocks that take the most bits at a time may end anywhere", "[kernels]") {
  std::mt19937 random(28);
  for (const int across : {10, 60}) {
    const JpegStream stream = many_bits_at_a_time(across, random);
    const JpegFile file = write_jpeg(stream);
    check_blocks(file.bytes, stream.blocks);
    for (std::size_t lacking = 1; lacking <= 100; ++lacking) {
      const File cut = without_last(file, lacking);
      CAPTURE(across, lacking);
      for (const auto& decoder : decoders()) REQUIRE_FALSE(decode_blocks(*decoder, cut));
    }
  }
}

TEST_CASE("an impossible code or run spoils its own block and those behind it, and no other", "[kernels]") {
  std::mt19937 random(27);
  for (const int across : {5, 45}) {
    const JpegStream stream = small_values(across, random);
    const std::size_t all = stream.blocks.size();
    for (const std::size_t at : {std::size_t{1}, all / 3, all * 2 / 3, all - 2, all - 1}) {
      for (const Impossible what : {Impossible::kDifference, Impossible::kCode, Impossible::kRun}) {
        const File file = with_impossible_block(stream, at, what);
        for (const auto& decoder : decoders()) {
          CAPTURE(across, at, static_cast<int>(what));
          const auto before = decode_blocks(*decoder, file, at);
          REQUIRE(before);
          REQUIRE(std::equal(before->begin(), before->end(), stream.blocks.begin()));
          REQUIRE_FALSE(decode_blocks(*decoder, file, at + 1));
          REQUIRE_FALSE(decode_blocks(*decoder, file));
        }
        check_all(file, {stream.width, stream.height}, kernels::whole({stream.width, stream.height}));
      }
    }
  }
}

TEST_CASE("a table that cannot be leaves nothing behind in a decoder", "[kernels]") {
  std::mt19937 random(29);
  JpegStream stream = many_bits_at_a_time(6, random);
  const JpegFile good = write_jpeg(stream);
  stream.blocks.assign(stream.blocks.size(), JpegBlock{});
  stream.dc[0] = stream.ac[0] = flat_code(2, {0, 1, 2, 3});  // all ones among them
  const JpegFile bad = write_jpeg(stream);
  for (const auto& decoder : decoders()) {
    const auto expected = decode_blocks(*decoder, good.bytes);
    REQUIRE(expected);
    REQUIRE_FALSE(decode_blocks(*decoder, bad.bytes));
    REQUIRE((decode_blocks(*decoder, good.bytes) == expected));
  }
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
    for (const auto& [file_name, file] : some_files_in(*folder)) {
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
