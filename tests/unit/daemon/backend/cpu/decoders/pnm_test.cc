// PNM: pixels of every kind of it, boxes against whole pictures, what is used where it lies, and the verdicts on bad
// files.
#include <string>
#include <vector>

#include "daemon/backend/cpu/decoders/pnm_decoder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/daemon/backend/cpu/decoders/decoder_rig.h"

namespace millrace {
namespace {

using namespace std::string_literals;

TEST_CASE("samples of any size become Pillow's bytes", "[backend]") {
  REQUIRE(decoded(decode_pnm, file_of("P4 3 2\n\x40\xA0"s), {3, 2}, 1) == std::vector{255, 0, 255, 0, 255, 0});
  REQUIRE(decoded(decode_pnm, file_of("P5 3 1 255\n\x00\x7F\xFF"s), {3, 1}, 1) == std::vector{0, 127, 255});
  REQUIRE(decoded(decode_pnm, file_of("P5 3 1 3\n\x01\x02\x09"s), {3, 1}, 1) == std::vector{85, 170, 255});
  REQUIRE(decoded(decode_pnm, file_of("P5 2 1 2\n\x01\x02"s), {2, 1}, 1) == std::vector{128, 255});  // 127.5, to even
  REQUIRE(decoded(decode_pnm, file_of("P5 2 1 102\n\x01\x03"s), {2, 1}, 1) ==
          std::vector{2, 8});  // 2.5 and 7.5, to even
  REQUIRE(decoded(decode_pnm, file_of("P5 3 1 65535\n\x00\x07\x01\x00\x00\xFE"s), {3, 1}, 1) ==
          std::vector{7, 255, 254});
  REQUIRE(decoded(decode_pnm, file_of("P5 2 1 1000\n\x00\x01\x00\x04"s), {2, 1}, 1) == std::vector{66, 255});
  REQUIRE(decoded(decode_pnm, file_of("P6 1 1 65535\n\x00\xFF\x80\x00\xFF\xFF"s), {1, 1}, 3) ==
          std::vector{1, 128, 255});
  REQUIRE(decoded(decode_pnm, file_of("P6 1 1 1000\n\x00\x01\x01\xF4\x03\xE9"s), {1, 1}, 3) ==
          std::vector{0, 128, 255});
}

TEST_CASE("PAM has its alpha dropped, and its samples scaled as PPM's", "[backend]") {
  const auto pam = [](const std::string& depth, const std::string& most, const std::string& kind,
                      const std::string& data) {
    return file_of("P7\n# made\nWIDTH 1\n\nHEIGHT 1\nDEPTH " + depth + "\nMAXVAL " + most + "\n" + kind + "ENDHDR\n" +
                   data);
  };

  REQUIRE(decoded(decode_pnm, pam("1", "255", "TUPLTYPE GRAYSCALE\n", "\x42"), {1, 1}, 1) == std::vector{0x42});
  REQUIRE(decoded(decode_pnm, pam("2", "255", "TUPLTYPE GRAYSCALE_ALPHA\n", "\x42\x01"), {1, 1}, 1) ==
          std::vector{0x42});
  REQUIRE(decoded(decode_pnm, pam("3", "255", "TUPLTYPE  RGB \n", "abc"), {1, 1}, 3) == std::vector{97, 98, 99});
  REQUIRE(decoded(decode_pnm, pam("4", "255", "TUPLTYPE RGB_ALPHA\n", "abcd"), {1, 1}, 3) == std::vector{97, 98, 99});
  REQUIRE(decoded(decode_pnm, pam("4", "51", "", "\x01\x02\x33\x34"), {1, 1}, 3) == std::vector{5, 10, 255});
  REQUIRE(decoded(decode_pnm, pam("1", "1", "TUPLTYPE BLACKANDWHITE\n", "\x01"), {1, 1}, 1) == std::vector{255});
}

TEST_CASE("remarks in a PNM header count for nothing, wherever they stand", "[backend]") {
  REQUIRE(decoded(decode_pnm, file_of("P5 # remark\r\n2#within\n \t1\v255#more\r\fab"s), {2, 1}, 1) ==
          std::vector{97, 98});
  REQUIRE(decoded(decode_pnm, file_of("P5\n1# a number goes on\n0 1 255\n0123456789"s), {10, 1}, 1)[9] == '9');
}

TEST_CASE("any box of a PNM has the pixels of the whole", "[backend]") {
  std::mt19937 random(1);
  for (const PnmSpec& spec :
       {PnmSpec{.pixels = make_pixels(37, 29, 1, 1)}, PnmSpec{.pixels = make_pixels(37, 29, 3, 2)},
        PnmSpec{.pixels = make_pixels(37, 29, 2, 3)}, PnmSpec{.pixels = make_pixels(37, 29, 4, 4)},
        PnmSpec{.pixels = make_pixels(37, 29, 1, 5), .bits = 1},
        PnmSpec{.pixels = make_pixels(37, 29, 1, 6), .bits = 16, .most = 65535},
        PnmSpec{.pixels = make_pixels(37, 29, 3, 7), .bits = 16, .most = 60000},
        PnmSpec{.pixels = make_pixels(37, 29, 3, 8), .most = 200}}) {
    CAPTURE(spec.pixels.channels, spec.bits, spec.most);

    check_boxes(decode_pnm, make_pnm(spec), {37, 29}, random);
  }
}

TEST_CASE("rows that need no change are used where they lie, if the file has room around them", "[backend]") {
  const std::string pixels(12, 'x'), room(PixelBuffer::kSlack, 'r');
  const auto is_in_file = [](const File& file) {
    PixelBuffer buffer;
    const Result<kernels::U8View> all = decode_pnm(request_of(file, {2, 2}, {0, 0, 2, 2}), buffer);
    REQUIRE(all);
    REQUIRE(std::string(all->row(0), all->row(0) + 6) + std::string(all->row(1), all->row(1) + 6) ==
            std::string(12, 'x'));
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(file.data());
    return all->data >= begin && all->data < begin + file.size();
  };

  REQUIRE(is_in_file(file_of("P6\n#" + room + "\n2 2\n255\n" + pixels + room)));
  REQUIRE_FALSE(is_in_file(file_of("P6\n#" + room + "\n2 2\n255\n" + pixels + room.substr(1))));
  REQUIRE_FALSE(is_in_file(file_of("P6\n2 2\n255\n" + pixels + room)));
}

TEST_CASE("a PNM that lacks a byte is truncated, for every box", "[backend]") {
  for (const File& file : {make_pnm({.pixels = make_pixels(9, 5, 3, 1)}), make_pnm({.pixels = make_pixels(9, 5, 4, 1)}),
                           make_pnm({.pixels = make_pixels(9, 5, 1, 1), .bits = 1})}) {
    const File cut(file.begin(), file.end() - 1);

    REQUIRE(decoding_refused(decode_pnm, cut, {9, 5}) == "truncated PNM: the image data ends before the image does");
    REQUIRE(decoding_refused(decode_pnm, file, {9, 4}) == "the decoder finds 9x5 pixels where the header says 9x4");
  }
}

TEST_CASE("decoding a PNM stops at the deadline", "[backend]") {
  REQUIRE(code_when_late(decode_pnm, make_pnm({.pixels = make_pixels(64, 64, 3, 1)}), {64, 64}) == Code::kDeadline);
}

TEST_CASE("a PNM header that is no header is refused, and says why", "[backend]") {
  REQUIRE(refused(file_of("P3 1 1 255\n1 2 3")) ==
          "PNM with samples written as text (P3) is not decoded here: write it as P6");
  REQUIRE(refused(file_of("P6 1 1")) == "cut off: the file ends within the header of a PNM picture");
  REQUIRE(refused(file_of("P6 1")) == "cut off: the file ends within the header of a PNM picture");
  REQUIRE(refused(file_of("P6 1 #")) == "cut off: the file ends within the header of a PNM picture");
  REQUIRE(refused(file_of("P6 x 1 255\n")) == "a broken PNM file: its width makes no sense");
  REQUIRE(refused(file_of("P6 1 -1 255\n")) == "a broken PNM file: its height makes no sense");
  REQUIRE(refused(file_of("P6 1 4294967296 255\n")) == "a broken PNM file: its height makes no sense");
  REQUIRE(refused(file_of("P6 1 12345678901 255\n")) == "a broken PNM file: a number of its header is too long");
  REQUIRE(refused(file_of("P6 1 1 65536\n")) == "a broken PNM file: its largest sample makes no sense");
  REQUIRE(refused(file_of("P6 1 1 0\n")) == "a broken PNM file: its largest sample is 0");
  REQUIRE(refused(file_of("P6 0 1 255\n")) == "its header says 0x1 pixels: there is nothing to decode");
  REQUIRE(refused(file_of("P7\nWIDTH 1\n")) == "cut off: the file ends within the header of a PNM picture");
  REQUIRE(refused(file_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nENDHDR\n")) ==
          "a broken PAM file: its header lacks WIDTH, HEIGHT, DEPTH or MAXVAL");
  REQUIRE(refused(file_of("P7\nWIDTH 1\nHEIGHT x\nENDHDR\n")) == "a broken PAM file: its HEIGHT makes no sense");
  REQUIRE(refused(file_of("P7\nSIZE 1\nENDHDR\n"))
              .starts_with("a broken PAM file: a line of its header begins with none of"));
  REQUIRE(refused(file_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\n")).starts_with("this kind of PAM"));
  REQUIRE(refused(file_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\n"))
              .starts_with("this kind"));
  REQUIRE(refused(file_of("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 65535\nENDHDR\n")) ==
          "PAM is decoded here with a MAXVAL of 1 to 255");
}

}  // namespace
}  // namespace millrace
