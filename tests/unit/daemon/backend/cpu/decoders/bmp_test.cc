// BMP: pixels of every kind of it, boxes against whole pictures, and the verdicts on bad files. What Pillow makes of many
// more: tests/golden/raster_files.py.
#include "daemon/backend/cpu/decoders/bmp_decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

std::string number(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 4 ? static_cast<char>(value >> 8 * i & 255U) : '\0';
  return text;
}

struct Bmp {
  std::uint32_t width = 0, height = 0, bits = 0;
  std::uint32_t compression = 0, colours = 0;
  std::string behind{};  // the header: masks, palette
  std::string data{};
};

File bmp(const Bmp& spec) {
  const auto begin = static_cast<std::uint32_t>(54 + spec.behind.size());
  return file_of("BM" + number(0, 8) + number(begin) + number(40) + number(spec.width) + number(spec.height) +
                 number(1, 2) + number(spec.bits, 2) + number(spec.compression) + number(0, 12) + number(spec.colours) +
                 number(0) + spec.behind + spec.data);
}

// Colours 10, 20, 30; 11, 21, 31; ...
std::string palette(int colours) {
  std::string text;
  for (int i = 0; i < colours; ++i)
    text += std::string{static_cast<char>(30 + i), static_cast<char>(20 + i), static_cast<char>(10 + i), '\0'};
  return text;
}

TEST_CASE("pixels of any number of bits are Pillow's", "[backend]") {
  REQUIRE(decoded(decode_bmp, bmp({2, 1, 1, 0, 0, palette(2), "\x40\0\0\0"s}), {2, 1}, 3) ==
          std::vector{10, 20, 30, 11, 21, 31});
  REQUIRE(decoded(decode_bmp, bmp({2, 1, 4, 0, 16, palette(16), "\x2F\0\0\0"s}), {2, 1}, 3) ==
          std::vector{12, 22, 32, 25, 35, 45});
  REQUIRE(decoded(decode_bmp, bmp({2, 1, 8, 0, 3, palette(3), "\x02\x03\0\0"s}), {2, 1}, 3) ==
          std::vector{12, 22, 32, 0, 0, 0});
  REQUIRE(decoded(decode_bmp, bmp({2, 1, 16, 0, 0, "", "\x5F\x12\x00\x80"s}), {2, 1}, 3) ==
          std::vector{32, 148, 255, 0, 0, 0});
  REQUIRE(decoded(decode_bmp, bmp({1, 1, 16, 3, 0, number(0xF800) + number(0x7E0) + number(0x1F), "\x5F\x12\0\0"s}),
                  {1, 1}, 3) == std::vector{16, 72, 255});
  REQUIRE(decoded(decode_bmp, bmp({1, 2, 24, 0, 0, "", "abc\0def\0"s}), {1, 2}, 3) ==
          std::vector{102, 101, 100, 99, 98, 97});
  REQUIRE(decoded(decode_bmp, bmp({1, 1, 32, 0, 0, "", "abcd"}), {1, 1}, 3) == std::vector{99, 98, 97});
  REQUIRE(decoded(decode_bmp, bmp({1, 1, 32, 3, 0, number(0xFF000000) + number(0xFF0000) + number(0xFF00), "abcd"}),
                  {1, 1}, 3) == std::vector{100, 99, 98});
  REQUIRE(decoded(decode_bmp, bmp({1, 0xFFFFFFFE, 24, 0, 0, "", "abc\0def\0"s}), {1, 2}, 3) ==
          std::vector{99, 98, 97, 102, 101, 100});
}

TEST_CASE("runs are Pillow's: a row ends where it is said to end, and what is too long for it is dropped",
          "[backend]") {
  const std::string rows =
      "\2\1\0\0"s
      "\0\3\2\3\4\0\0\0"s;  // 1 1 0; and as they are: 2 3 4
  const auto runs = [](const std::string& data) { return bmp({3, 2, 8, 1, 8, palette(8), data}); };

  REQUIRE(decoded(decode_bmp, runs(rows + "\0\1"s), {3, 2}, 3) ==
          std::vector{12, 22, 32, 13, 23, 33, 14, 24, 34, 11, 21, 31, 11, 21, 31, 10, 20, 30});
  REQUIRE(decoded(decode_bmp, runs("\xFF\1\0\0\3\2"s), {3, 2}, 3) ==
          decoded(decode_bmp, runs("\3\1\0\0\xFF\2"s), {3, 2}, 3));
  REQUIRE(decoded(decode_bmp, runs("\0\2\1\1\2\5"s), {3, 2}, 3) ==
          std::vector{10, 20, 30, 15, 25, 35, 15, 25, 35, 10, 20, 30, 10, 20, 30, 10, 20, 30});
  REQUIRE(decoded(decode_bmp, bmp({3, 1, 4, 2, 8, palette(8), "\3\x12"s}), {3, 1}, 3) ==
          std::vector{11, 21, 31, 12, 22, 32, 11, 21, 31});
  const std::string cut = "truncated BMP: the image data ends before the image does";
  REQUIRE(decoding_refused(decode_bmp, runs("\3\1\0\0\0\1"s), {3, 2}) == cut);
  REQUIRE(decoding_refused(decode_bmp, runs("\3\1\3\1\3\1"s), {3, 2}) == cut);
  REQUIRE(decoding_refused(decode_bmp, runs("\0\3\1"s), {3, 2}) == cut);
  REQUIRE(decoding_refused(decode_bmp, runs("\0\2\1"s), {3, 2}) == cut);
  REQUIRE(decoding_refused(decode_bmp, runs(""), {3, 2}) == cut);
}

TEST_CASE("a BMP whose palette is grey is grey", "[backend]") {
  const Pixels pixels = make_pixels(31, 17, 1, 1);

  const std::vector<int> samples = decoded(decode_bmp, make_bmp({.pixels = pixels}), {31, 17}, 1);

  REQUIRE(samples == std::vector<int>(pixels.data.begin(), pixels.data.end()));
  REQUIRE(decoded(decode_bmp, bmp({2, 1, 1, 0, 0, number(0) + number(0xFFFFFF), "\x40\0\0\0"s}), {2, 1}, 1) ==
          std::vector{0, 255});
}

TEST_CASE("indices of a BMP are its samples, whatever its palette", "[backend]") {
  constexpr DecodeFunction kIndices = indices_by<decode_bmp>;
  const Pixels pixels = make_pixels(37, 29, 1, 1);
  const std::vector<int> samples(pixels.data.begin(), pixels.data.end());
  std::mt19937 random(1);

  REQUIRE(decoded(kIndices, bmp({2, 1, 1, 0, 0, palette(2), "\x40\0\0\0"s}), {2, 1}, 1) == std::vector{0, 1});
  REQUIRE(decoded(kIndices, bmp({2, 1, 4, 0, 16, palette(16), "\x2F\0\0\0"s}), {2, 1}, 1) == std::vector{2, 15});
  REQUIRE(decoded(kIndices, bmp({2, 1, 8, 0, 3, palette(3), "\x02\x03\0\0"s}), {2, 1}, 1) == std::vector{2, 3});
  REQUIRE(decoded(kIndices, bmp({3, 1, 8, 1, 8, palette(8), "\1\1\2\2"s}), {3, 1}, 1) == std::vector{1, 2, 2});
  REQUIRE(decoded(kIndices, bmp({3, 1, 4, 2, 8, palette(8), "\3\x12"s}), {3, 1}, 1) == std::vector{1, 2, 1});
  for (const bool run_length : {false, true}) {
    const File grey = make_bmp({.pixels = pixels, .run_length = run_length});

    REQUIRE(decoded(kIndices, grey, {37, 29}, 1) == samples);
    check_boxes(kIndices, grey, {37, 29}, random);
  }
}

TEST_CASE("a BMP in colour, or of black and white, has no indices", "[backend]") {
  constexpr DecodeFunction kIndices = indices_by<decode_bmp>;

  for (const std::uint32_t channels : {3U, 4U})
    REQUIRE(decoding_refused(kIndices, make_bmp({.pixels = make_pixels(5, 4, channels, 1)}), {5, 4})
                .starts_with("has no indices (recipe.indices): store it as "));
  for (const std::uint32_t bits : {1U, 8U})
    REQUIRE(decoding_refused(kIndices, bmp({1, 1, bits, 0, 2, number(0) + number(0xFFFFFF), "\0\0\0\0"s}), {1, 1}) ==
            "a BMP whose palette is black and white, which are no indices: store it in grey of 8 bits, or with a "
            "palette of other colours");
}

TEST_CASE("any box of a BMP has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  for (const BmpSpec& spec :
       {BmpSpec{.pixels = make_pixels(37, 29, 1, 1)}, BmpSpec{.pixels = make_pixels(37, 29, 3, 2)},
        BmpSpec{.pixels = make_pixels(37, 29, 4, 3), .top_down = true},
        BmpSpec{.pixels = make_pixels(37, 29, 1, 4), .run_length = true}}) {
    CAPTURE(spec.pixels.channels, spec.run_length);

    check_boxes(decode_bmp, make_bmp(spec), {37, 29}, random);
  }
}

TEST_CASE("a BMP that lacks a byte is truncated, and one of another size is refused", "[backend]") {
  for (const BmpSpec& spec : {BmpSpec{.pixels = make_pixels(12, 5, 3, 1)}, BmpSpec{.pixels = make_pixels(12, 5, 4, 1)},
                              BmpSpec{.pixels = make_pixels(12, 5, 1, 1)}}) {
    const File file = make_bmp(spec), cut(file.begin(), file.end() - 1);

    REQUIRE(decoding_refused(decode_bmp, cut, {12, 5}) == "truncated BMP: the image data ends before the image does");
    REQUIRE(decoding_refused(decode_bmp, file, {12, 4}) == "the decoder finds 12x5 pixels where the header says 12x4");
  }
}

TEST_CASE("decoding a BMP stops at the deadline", "[backend]") {
  REQUIRE(code_when_late(decode_bmp, make_bmp({.pixels = make_pixels(64, 64, 3, 1)}), {64, 64}) == Code::kDeadline);
  REQUIRE(code_when_late(decode_bmp, make_bmp({.pixels = make_pixels(64, 64, 1, 1), .run_length = true}), {64, 64}) ==
          Code::kDeadline);
}

TEST_CASE("a BMP header that is none, or of a kind that nobody reads, is refused and says why", "[backend]") {
  const std::string unknown = "this kind of BMP is not decoded here: ";

  REQUIRE(refused(file_of("BM")) == "cut off: the file ends within the header of a BMP picture");
  REQUIRE(refused(file_of("BM" + number(0, 12) + number(40) + number(1))) ==
          "cut off: the file ends within the header of a BMP picture");
  REQUIRE(refused(file_of("BM" + number(0, 12) + number(41))) == unknown + "its header is 41 bytes long");
  REQUIRE(refused(bmp({1, 1, 2, 0, 0})) == unknown + "2 bits a pixel");
  REQUIRE(refused(bmp({1, 1, 24, 1, 0})) == unknown + "24 bits a pixel, compression 1");
  REQUIRE(refused(bmp({1, 1, 8, 4, 0})) == unknown + "8 bits a pixel, compression 4");
  REQUIRE(refused(bmp({1, 1, 8, 3, 0})) == unknown + "8 bits a pixel, compression 3");
  REQUIRE(refused(bmp({1, 1, 16, 3, 0, number(1, 12)})) ==
          unknown + "its colours lie in bits of their own choice (bit fields)");
  REQUIRE(refused(bmp({1, 1, 8, 0, 257})) == "a broken BMP: its palette has more than 256 colours");
  REQUIRE(refused(bmp({0x80000000, 1, 24, 0, 0})) == "a broken BMP: its size makes no sense");
  REQUIRE(refused(bmp({1, 0x80000000, 24, 0, 0})) == "a broken BMP: its size makes no sense");
  REQUIRE(refused(bmp({0, 1, 24, 0, 0})) == "its header says 0x1 pixels: there is nothing to decode");
}

}  // namespace
}  // namespace millrace
