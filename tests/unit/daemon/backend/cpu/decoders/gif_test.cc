// GIF: the first picture, on its canvas; boxes against whole pictures, and the verdicts on bad files. What Pillow makes of
// many more: tests/golden/raster_files.py.
#include "daemon/backend/cpu/decoders/gif_decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

std::string u16(unsigned value) {
  return {static_cast<char>(value & 255U), static_cast<char>(value >> 8U)};
}

// Colours 1 2 3, 11 12 13, 21 22 23 and 31 32 33. Data: 2 bits a pixel.
struct Gif {
  kernels::Size screen{2, 1};
  kernels::Box frame{0, 0, 2, 1};
  std::string before{};                  // the picture
  std::string data = "\2\2\x8C\x0A\0"s;  // clear, 1, 2, end: codes of 3 bits
};

File gif(const Gif& spec) {
  const std::string palette = "\1\2\3\x0B\x0C\x0D\x15\x16\x17\x1F\x20\x21";
  const auto text = [](int value) { return u16(static_cast<unsigned>(value)); };
  return file_of("GIF89a" + text(spec.screen.width) + text(spec.screen.height) + "\x81\0\0"s + palette + spec.before +
                 "," + text(spec.frame.left) + text(spec.frame.top) + text(spec.frame.width) + text(spec.frame.height) +
                 "\0"s + spec.data + ";");
}

TEST_CASE("a GIF's first picture has its palette's colours, transparent ones included", "[backend]") {
  const std::string transparent = "!\xF9\4\1\0\0\2\0"s;
  const std::vector<int> pixels{11, 12, 13, 21, 22, 23};

  REQUIRE(decoded(decode_gif, gif({}), {2, 1}, 3) == pixels);
  REQUIRE(decoded(decode_gif, gif({.before = transparent}), {2, 1}, 3) == pixels);
}

TEST_CASE("around a GIF's picture is the first colour, or the transparent one", "[backend]") {
  const std::string transparent = "!\xF9\4\1\0\0\3\0"s;

  REQUIRE(decoded(decode_gif, gif({.screen = {3, 1}, .frame = {1, 0, 2, 1}}), {3, 1}, 3) ==
          std::vector{1, 2, 3, 11, 12, 13, 21, 22, 23});
  REQUIRE(decoded(decode_gif, gif({.screen = {2, 2}, .before = transparent}), {2, 2}, 3) ==
          std::vector{11, 12, 13, 21, 22, 23, 31, 32, 33, 31, 32, 33});
  REQUIRE(decoded(decode_gif, gif({.screen = {1, 1}, .frame = {1, 0, 2, 1}}), {3, 1}, 3) ==
          std::vector{1, 2, 3, 11, 12, 13, 21, 22, 23});
}

TEST_CASE("a GIF without a palette, or with one of greys in order, is grey", "[backend]") {
  const Pixels pixels = make_pixels(31, 17, 1, 1);

  const std::vector<int> samples = decoded(decode_gif, make_gif({.pixels = pixels, .coloured = false}), {31, 17}, 1);

  REQUIRE(samples == std::vector<int>(pixels.data.begin(), pixels.data.end()));
}

TEST_CASE("rows of an interlaced GIF come where they belong, however few there are", "[backend]") {
  for (std::uint32_t height = 1; height < 20; ++height) {
    const Pixels pixels = make_pixels(3, height, 1, 1);
    const kernels::Size size{3, static_cast<int>(height)};

    const std::vector<int> samples =
        decoded(decode_gif, make_gif({.pixels = pixels, .coloured = false, .interlaced = true}), size, 1);

    REQUIRE(samples == std::vector<int>(pixels.data.begin(), pixels.data.end()));
  }
}

TEST_CASE("indices of a GIF are its codes' colours, and around its picture the number of what is there", "[backend]") {
  constexpr DecodeFunction kIndices = indices_by<decode_gif>;
  const std::string transparent = "!\xF9\4\1\0\0\3\0"s;
  const Pixels pixels = make_pixels(37, 29, 1, 1);
  std::mt19937 random(1);

  REQUIRE(decoded(kIndices, gif({}), {2, 1}, 1) == std::vector{1, 2});
  REQUIRE(decoded(kIndices, gif({.screen = {3, 1}, .frame = {1, 0, 2, 1}}), {3, 1}, 1) == std::vector{0, 1, 2});
  REQUIRE(decoded(kIndices, gif({.screen = {2, 2}, .before = transparent}), {2, 2}, 1) == std::vector{1, 2, 3, 3});
  for (const bool coloured : {false, true}) {
    for (const bool interlaced : {false, true}) {
      const File file = make_gif({.pixels = pixels, .coloured = coloured, .interlaced = interlaced, .animated = true});

      REQUIRE(decoded(kIndices, file, {37, 29}, 1) == std::vector<int>(pixels.data.begin(), pixels.data.end()));
      check_boxes(kIndices, file, {37, 29}, random);
    }
  }
  check_boxes(kIndices, gif({.screen = {9, 7}, .frame = {3, 2, 2, 1}}), {9, 7}, random);
}

TEST_CASE("any box of a GIF has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  for (const bool interlaced : {false, true})
    check_boxes(decode_gif, make_gif({.pixels = make_pixels(37, 29, 1, 1), .interlaced = interlaced, .animated = true}),
                {37, 29}, random);
  check_boxes(decode_gif, gif({.screen = {9, 7}, .frame = {3, 2, 2, 1}}), {9, 7}, random);
}

TEST_CASE("a GIF whose codes end before its picture, or make no sense, is an error for every box", "[backend]") {
  const std::string cut = "truncated GIF: the image data ends before the image does";
  const std::string damaged = "damaged GIF: the image data makes no sense";
  const auto with = [](const std::string& data) { return gif({.data = data}); };

  REQUIRE(decoding_refused(decode_gif, with("\2\1\x2C\0"s), {2, 1}) == cut);          // clear, 5: end
  REQUIRE(decoding_refused(decode_gif, with("\2\1\x0C\0"s), {2, 1}) == cut);          // the last code is missing
  REQUIRE(decoding_refused(decode_gif, with("\2\xFF\x8C\x0A\0"s), {2, 1}) == cut);    // a block longer than the file
  REQUIRE(decoding_refused(decode_gif, with("\2\1\x34\0"s), {2, 1}) == damaged);      // clear, 6: not yet there
  REQUIRE(decoding_refused(decode_gif, with("\2\2\xCC\x01\0"s), {2, 1}) == damaged);  // clear, 1, 7: one too far
  REQUIRE(decoding_refused(decode_gif, gif({}), {2, 2}) == "the decoder finds 2x1 pixels where the header says 2x2");
}

TEST_CASE("a code that is about to be made repeats the last string and its first pixel", "[backend]") {
  REQUIRE(decoded(decode_gif, gif({.screen = {3, 1}, .frame = {0, 0, 3, 1}, .data = "\2\2\x8C\x01\0"s}), {3, 1}, 3) ==
          std::vector{11, 12, 13, 11, 12, 13, 11, 12, 13});  // clear, 1, 6
}

TEST_CASE("decoding a GIF stops at the deadline", "[backend]") {
  REQUIRE(code_when_late(decode_gif, make_gif({.pixels = make_pixels(64, 64, 1, 1)}), {64, 64}) == Code::kDeadline);
}

TEST_CASE("a GIF without a picture is refused, and says why", "[backend]") {
  const std::string cut = "cut off: the file ends before the first picture of a GIF";
  const std::string screen = "GIF89a\2\0\1\0\0\0\0"s;

  for (std::size_t size = 6; size < screen.size(); ++size) REQUIRE(refused(file_of(screen.substr(0, size))) == cut);
  REQUIRE(refused(file_of(screen)) == cut);
  REQUIRE(refused(file_of("GIF89a\2\0\1\0\x80\0\0\1\2\3"s)) == cut);
  REQUIRE(refused(file_of(screen + ";")) == "a broken GIF: there is no picture in it");
  REQUIRE(refused(file_of(screen + "!\xF9\2\0\0\0"s)) == "a broken GIF: an extension is too short");
  REQUIRE(refused(file_of(screen + "!")) == "a broken GIF: an extension is too short");
  REQUIRE(refused(gif({.frame = {0, 0, 0, 1}})) == "a broken GIF: its first picture has no pixels");
  REQUIRE(refused(gif({.data = "\x0D"})) == "a broken GIF: its codes have more than 12 bits");
  REQUIRE(refused(file_of(screen + ",\0\0\0\0\1"s)) == cut);
}

}  // namespace
}  // namespace millrace
