// Packed files: their frame, damage to it, and JPEG files that come back byte for byte.
#include "kernels/mrp/packed_file.h"

#include <algorithm>
#include <cstring>

#include "client/cli/convert/file_packer.h"
#include "kernels/mrp/restore.h"
#include "tests/support/jpeg/random_jpeg.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace {
namespace {

using cli::FilePacker;
using cli::WhyCopied;
using kernels::mrp::PackedFile;
using kernels::mrp::read_packed_file;
using Bytes8 = std::vector<std::uint8_t>;

WhyCopied pack(const File& jpeg, Bytes8& packed) {
  static FilePacker packer;
  return packer.pack(file_bytes(jpeg), "jpg", packed);
}

Bytes8 packed_of(const File& jpeg) {
  Bytes8 packed;
  REQUIRE(pack(jpeg, packed) == WhyCopied::kNothing);
  return packed;
}

std::string restore(Bytes8 packed, Bytes8& jpeg) {
  static FilePacker packer;
  return packer.restore(packed, jpeg);
}

File small_jpeg() {
  return make_jpeg({.pixels = make_pixels(33, 20, 3, 7)});
}

TEST_CASE("a packed file says what it was made of", "[kernels]") {
  const Bytes8 front{1, 2, 3}, listed{4, 5}, end{0xFF, 0xD9, 6}, image{7, 8, 9, 10};
  const PackedFile file{.way_back = kernels::mrp::WayBack::kYes,
                        .front = front,
                        .padding = kernels::jpeg::ScanPadding::Kind::kListed,
                        .listed = listed,
                        .end = end,
                        .image = image,
                        .ending = "JPEG",
                        .jpeg_bytes = 99,
                        .jpeg_hash = 0x0123456789ABCDEF};
  Bytes8 bytes;
  PackedFile read;

  REQUIRE(write_packed_file(file, bytes));

  REQUIRE(read_packed_file(bytes, read) == "");
  REQUIRE(read.way_back == file.way_back);
  REQUIRE(read.padding == file.padding);
  REQUIRE(std::ranges::equal(read.front, front));
  REQUIRE(std::ranges::equal(read.listed, listed));
  REQUIRE(std::ranges::equal(read.end, end));
  REQUIRE(std::ranges::equal(read.image, image));
  REQUIRE(read.ending == "JPEG");
  REQUIRE(read.jpeg_bytes == 99);
  REQUIRE(read.jpeg_hash == file.jpeg_hash);
}

// As kernels/mrp/README.md has it.
TEST_CASE("the worked example of the format", "[kernels]") {
  const Bytes8 front{0xFF, 0xD8}, end{0xFF, 0xD9}, image{0x4D, 0x52, 0x50, 0x4B};
  const PackedFile file{.way_back = kernels::mrp::WayBack::kYes,
                        .front = front,
                        .end = end,
                        .image = image,
                        .ending = "jpg",
                        .jpeg_bytes = 0x1234,
                        .jpeg_hash = 0x8877665544332211};
  const Bytes8 expected{'M',  'R',  'P',  'F',  1,    1,    1,    0,  // version, way back, ones
                        0,    0,    0,    0,    0,    0,    0,    0,  // checksum, see below
                        2,    0,    0,    0,    0,    0,    0,    0,
                        2,    0,    0,    0,    0,    0,    0,    0,      // front, listed, end, zero
                        4,    0,    0,    0,    0,    0,    0,    0,      // image
                        0x34, 0x12, 0,    0,    0,    0,    0,    0,      // JPEG file: bytes
                        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,   // hash
                        'j',  'p',  'g',  0,    0,    0,    0,    0,      // ending
                        0xFF, 0xD8, 0xFF, 0xD9, 0x4D, 0x52, 0x50, 0x4B};  // front, end, image
  Bytes8 bytes;

  REQUIRE(write_packed_file(file, bytes));

  REQUIRE(bytes.size() == expected.size());
  Bytes8 without = bytes;
  std::fill_n(without.begin() + 8, 8, std::uint8_t{0});
  REQUIRE(without == expected);
  REQUIRE(std::any_of(bytes.begin() + 8, bytes.begin() + 16, [](std::uint8_t byte) { return byte != 0; }));
}

TEST_CASE("no byte of a packed file can be another one, and none can lack", "[kernels]") {
  const Bytes8 packed = packed_of(small_jpeg());
  Bytes8 jpeg;
  REQUIRE(restore(packed, jpeg) == "");

  for (std::size_t at = 0; at < packed.size(); ++at) {
    for (const std::uint8_t flip : {0x01, 0x80}) {
      Bytes8 damaged = packed;
      damaged[at] ^= flip;
      CAPTURE(at, int{flip});
      REQUIRE(restore(damaged, jpeg) != "");
    }
  }
  for (std::size_t size = 0; size < packed.size(); ++size) {
    CAPTURE(size);
    REQUIRE(restore(Bytes8(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size)), jpeg) != "");
  }
  Bytes8 longer = packed;
  longer.push_back(0);
  REQUIRE(restore(longer, jpeg) == "there is more in it than it should have");
}

TEST_CASE("a packed file of a later version says so", "[kernels]") {
  Bytes8 packed = packed_of(small_jpeg());
  packed[4] = 2;
  PackedFile file;
  REQUIRE(read_packed_file(packed, file) == "of version 2, where 1 is known");
}

// With the checksum made anew, as an attacker would make it.
TEST_CASE("a packed file whose parts contradict each other becomes no JPEG file", "[kernels]") {
  const Bytes8 one = packed_of(small_jpeg()), two = packed_of(make_jpeg({.pixels = make_pixels(90, 61, 3, 8)}));
  PackedFile first, second;
  REQUIRE(read_packed_file(one, first) == "");
  REQUIRE(read_packed_file(two, second) == "");
  Bytes8 bytes, jpeg;
  const auto outcome = [&](const PackedFile& file) {
    REQUIRE(write_packed_file(file, bytes));
    return restore(bytes, jpeg);
  };
  const std::string contradiction = "its JPEG header and its packed image do not belong together";

  PackedFile mixed = first;
  mixed.image = second.image;
  REQUIRE(outcome(mixed) == contradiction);
  mixed = first;
  mixed.front = first.front.first(first.front.size() / 2);
  REQUIRE(outcome(mixed) == contradiction);
  mixed = first;
  mixed.padding = kernels::jpeg::ScanPadding::Kind::kListed;
  REQUIRE(outcome(mixed) == contradiction);
  mixed = first;
  mixed.jpeg_hash ^= 1;
  REQUIRE(outcome(mixed) == "what it becomes is not the JPEG file that it was made from");
  mixed = first;
  mixed.padding = kernels::jpeg::ScanPadding::Kind::kZeros;
  REQUIRE(outcome(mixed) == "what it becomes is not the JPEG file that it was made from");
  mixed = first;
  mixed.way_back = kernels::mrp::WayBack::kNo;
  REQUIRE(outcome(mixed) == "only its pixels were kept, not the JPEG file");
  mixed.ending = "much too long";
  REQUIRE_FALSE(write_packed_file(mixed, bytes));
}

TEST_CASE("random streams come back byte for byte, or are not packed", "[kernels]") {
  std::mt19937 random(5);
  int packed_ones = 0;
  for (int i = 0; i < rounds(300); ++i) {
    const JpegStream stream = draw_jpeg({.restart_interval = i % 3 == 0 ? 1 + i % 9 : -1}, random);
    File file = write_jpeg(stream).bytes;
    if (i % 4 == 0) file.insert(file.end(), {std::byte{0}, std::byte{0xFF}, std::byte{0xD9}, std::byte{7}});
    Bytes8 packed, jpeg;
    const WhyCopied why = pack(file, packed);
    CAPTURE(i, static_cast<int>(why));
    if (why != WhyCopied::kNothing) {
      const bool usual = is_plain(stream) && !stream.style.needless_runs && !stream.style.odd_ends;
      REQUIRE((!usual || why == WhyCopied::kNotOurs || why == WhyCopied::kTooLarge));
      continue;
    }
    ++packed_ones;
    REQUIRE(restore(packed, jpeg) == "");
    REQUIRE(std::ranges::equal(jpeg, file_bytes(file)));
  }
  REQUIRE(packed_ones > rounds(300) / 5);
}

TEST_CASE("test images come back byte for byte, or are not packed", "[kernels]") {
  int packed_ones = 0, photos = 0;
  for (const char* folder : {"photos", "jpeg-variants", "bad-jpeg", "png-suite"}) {
    const auto path = test_data(folder);
    if (!path) return;
    for (const auto& [name, file] : files_in(*path)) {
      Bytes8 packed, jpeg;
      const WhyCopied why = pack(file, packed);
      CAPTURE(name, static_cast<int>(why));
      if (folder == std::string("png-suite")) REQUIRE(why != WhyCopied::kNothing);
      if (why != WhyCopied::kNothing) continue;
      ++packed_ones;
      photos += folder == std::string("photos") ? 1 : 0;
      REQUIRE(restore(packed, jpeg) == "");
      REQUIRE(std::ranges::equal(jpeg, file_bytes(file)));
    }
  }
  REQUIRE(photos > 150);
  REQUIRE(packed_ones > photos);
}

TEST_CASE("what cannot be packed is told apart", "[kernels]") {
  Bytes8 packed;
  const File good = small_jpeg();
  REQUIRE(pack(make_png({.pixels = make_pixels(9, 9, 3, 1)}), packed) == WhyCopied::kOtherFormat);
  REQUIRE(pack({}, packed) == WhyCopied::kOtherFormat);
  REQUIRE(pack(make_jpeg({.pixels = make_pixels(33, 20, 3, 7), .progressive = true}), packed) ==
          WhyCopied::kProgressive);
  REQUIRE(pack(make_jpeg({.pixels = make_pixels(33, 20, 4, 7)}), packed) == WhyCopied::kNotOurs);
  REQUIRE(pack(File(good.begin(), good.end() - 2), packed) == WhyCopied::kNotOurs);  // without EOI
  REQUIRE(pack(File(good.begin(), good.begin() + 30), packed) == WhyCopied::kNotOurs);
}

}  // namespace
}  // namespace millrace
