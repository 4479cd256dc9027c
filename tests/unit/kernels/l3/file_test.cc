// L3 files that are damaged, cut off, or made up: what is refused, and with which words.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"
#include "tests/unit/kernels/l3/l3_rig.h"

namespace millrace::kernels::l3 {
namespace {

// 40 x 34 pixels of RGB in four tiles, with metadata of odd lengths.
FileVector small_file() {
  FileVector samples;
  for (int i = 0; i < 40 * 34 * 3; ++i) samples.push_back(static_cast<std::uint8_t>(i * 7 ^ i >> 5));
  const FileVector exif{1, 2, 3}, xmp{9};
  FileVector file;
  REQUIRE(encode({.samples = {samples.data(), {40, 34}, 3, 1, 120}, .orientation = 6, .exif = exif, .xmp = xmp},
                 Effort::kFast, Target::kScalar, file)
              .empty());
  return file;
}

std::string wrong_with(FileBytes file) {
  const PaddedFile padded(file);
  Image image;
  return image.read(padded.view(), Check::kChecksums);
}

// After both checksums have been made right; empty: it is read.
std::string wrong_with_signed(const std::function<void(FileVector&)>& change) {
  FileVector file = small_file();
  change(file);
  REQUIRE(sign_file(file));
  return wrong_with(file);
}

// The first fault of decoding all of a file that is read.
Outcome outcome_of(const FileVector& file) {
  const PaddedFile padded(file);
  Image image;
  REQUIRE(image.read(padded.view(), Check::kChecksums).empty());
  FileVector pixels(40 * 34 * 3);
  return Decoder(best_target()).decode(image, whole({40, 34}), Form::kStored, {}, {pixels.data(), {40, 34}, 3, 1, 120});
}

std::size_t first_tile(const FileVector& file) {
  Head head;
  REQUIRE(read_head(file, Check::kChecksums, head).empty());
  return head.data_at();
}

}  // namespace

TEST_CASE("a file's head, metadata and palette are read back", "[l3]") {
  const PaddedFile file(small_file());
  Image image;

  REQUIRE(image.read(file.view(), Check::kChecksums).empty());
  REQUIRE(image.head().orientation == 6);
  REQUIRE(image.head().size == Size{40, 34});
  REQUIRE(image.exif().size() == 3);
  REQUIRE(image.icc().empty());
  REQUIRE(image.xmp().front() == 9);
}

TEST_CASE("a file of which any one byte was changed is refused", "[l3]") {
  const FileVector good = small_file();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const std::uint8_t change : {0x01, 0x80, 0xFF}) {
      FileVector bad = good;
      bad[i] = static_cast<std::uint8_t>(bad[i] ^ change);
      CAPTURE(i);

      REQUIRE_FALSE(wrong_with(bad).empty());
    }
  }
}

TEST_CASE("a file that ends early is cut off, and one that goes on is refused", "[l3]") {
  FileVector file = small_file();
  for (std::size_t size = 4; size < file.size(); ++size) REQUIRE(wrong_with(FileBytes(file).first(size)) == "cut off");
  file.push_back(0);
  REQUIRE(wrong_with(file) == "1 bytes follow its last tile");
}

TEST_CASE("fields out of their range are refused, whatever the checksums say", "[l3]") {
  const auto with = [](std::size_t at, std::uint64_t number, int bytes) {
    return wrong_with_signed([=](FileVector& file) { put_number(number, bytes, at, file); });
  };

  CHECK(with(field::kChannels, 5, 1) == "it has 5 channels");
  CHECK(with(field::kChannels, 0, 1) == "it has 0 channels");
  CHECK(with(field::kDepth, 12, 1) == "its samples have 12 bits");
  CHECK(with(field::kOrientation, 9, 1) == "its orientation is 9");
  CHECK(with(field::kSide, 6, 1) == "its tiles have another size than 32 pixels a side");
  CHECK(with(field::kColours, 3, 2) == "it has a palette that it cannot have");
  CHECK(with(field::kZero, 1, 4) == "a field that is zero has a number");
  CHECK(with(field::kZeroToo, 1, 4) == "a field that is zero has a number");
}

TEST_CASE("a short file that claims many pixels is cut off before memory is taken", "[l3]") {
  FileVector file = small_file();
  put_number(1U << 15U, 4, field::kWidth, file);
  put_number(1U << 16U, 4, field::kHeight, file);
  file.resize(100);

  REQUIRE(wrong_with(file) == "cut off");
}

TEST_CASE("offsets that fall, and such as do not end with the tiles, are refused", "[l3]") {
  Head head;
  REQUIRE(read_head(small_file(), Check::kChecksums, head).empty());

  CHECK(wrong_with_signed([&](FileVector& file) { put_number(1, 4, head.offsets_at(), file); }) ==
        "tile 0 begins where it cannot");
  CHECK(wrong_with_signed([&](FileVector& file) { put_number(0xFFFF'FFFF, 4, head.offsets_at() + 4, file); }) ==
        "tile 2 begins where it cannot");
  CHECK(wrong_with_signed([&](FileVector& file) { file.push_back(0); }) == "its tiles end where they cannot");
  CHECK(wrong_with_signed([&](FileVector& file) { file[head.offsets_at() - 1] = 1; }) ==
        "a byte that is zero has a number");
}

TEST_CASE("a tile that makes no sense is told by its number, with what is wrong", "[l3]") {
  const auto told = [](std::size_t offset, std::uint8_t byte) {
    FileVector file = small_file();
    file[first_tile(file) + offset] = byte;
    REQUIRE(sign_file(file));
    return text_of(outcome_of(file));
  };

  CHECK(told(0, 0x03) == "tile 0 is of a kind that there is not");
  CHECK(told(0, 0x10) == "tile 0 is of a kind that there is not");
  CHECK(told(0, 0x06) == "tile 0 is of a kind that there is not");
  CHECK(told(0, 0x01) != "tile 0 is fine");
}

TEST_CASE("pictures that version 2 cannot hold are refused with what they have", "[l3]") {
  const FileVector samples(64 * 4);
  const FileVector palette(9);
  FileVector out;
  const SampleView grey{samples.data(), {8, 8}, 1, 1, 8};
  SampleView wide = grey, none = grey;
  wide.size.width = (1 << 20) + 1;
  none.size.height = 0;

  CHECK(encode({.samples = wide}, Effort::kFast, Target::kScalar, out) == "a side of more than 1048576 pixels");
  CHECK(encode({.samples = none}, Effort::kFast, Target::kScalar, out) == "no pixels");
  CHECK(encode({.samples = {samples.data(), {8, 8}, 5, 1, 40}}, Effort::kFast, Target::kScalar, out) ==
        "other than 1 to 4 channels");
  CHECK(encode({.samples = {samples.data(), {8, 8}, 3, 1, 24}, .palette = palette, .colour_bytes = 3}, Effort::kFast,
               Target::kScalar, out) == "a palette beside other samples than numbers of 8 bits");
}

}  // namespace millrace::kernels::l3
