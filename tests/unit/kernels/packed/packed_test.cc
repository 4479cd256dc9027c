// Packed images: every block comes back, by every encoder and every unpacker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/jpeg/ordinary.h"
#include "kernels/packed/shapes.h"
#include "tests/support/pictures/test_data.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::packed {
namespace {

// Every encoder makes the same bytes, of which every unpacker makes the blocks again.
void check_round_trip(const Picture& picture) {
  static std::vector<std::unique_ptr<Encoder>> encoders = [] {
    std::vector<std::unique_ptr<Encoder>> made;
    for (const Target target : every_target()) made.push_back(std::make_unique<Encoder>(target));
    return made;
  }();
  const Bytes bytes = pack(*encoders.front(), picture);
  REQUIRE_FALSE(bytes.empty());
  for (const auto& encoder : encoders) REQUIRE((pack(*encoder, picture) == bytes));
  Placed placed(bytes);
  PackedImage image;
  REQUIRE(image.read(placed.bytes(), Check::kChecksum));
  REQUIRE(image.grid() == grid_of(picture.header));
  for (const Target target : every_target()) {
    CAPTURE(name_of(target));
    REQUIRE((unpack_all(image, unpacker(target)) == picture.blocks));
  }
}

void check_files(const char* folder, std::size_t most) {
  const auto path = test_data(folder);
  if (!path) return;
  std::size_t checked = 0;
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*path)) {
    if (!entry.is_regular_file() || checked == most || !is_taken(seen++)) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    const Picture picture = read_picture(std::as_bytes(std::span(file)));
    if (picture.blocks.empty()) continue;
    CAPTURE(entry.path().string());
    check_round_trip(picture);
    ++checked;
  }
  CHECK(checked > 0);
}

TEST_CASE("every block of a photograph comes back", "[packed]") {
  check_files("photos", 40);
}

TEST_CASE("every block of the variants of JPEG that our decoder takes comes back", "[packed]") {
  check_files("jpeg-variants", 1000);
}

struct Sampling {
  int components, h, v;
};
constexpr Sampling kSamplings[] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 1, 2}, {3, 2, 2}};

TEST_CASE("random coefficients come back, sparse and dense, small and extreme, in every sampling", "[packed]") {
  std::mt19937 random(17);
  for (const Sampling& sampling : kSamplings) {
    for (const int density : {0, 5, 50, 300, 900, 1000}) {
      for (const int bits : {1, 2, 4, 7, 8, 12}) {
        const Size size{5 + static_cast<int>(random() % 600), 1 + static_cast<int>(random() % 40)};
        Picture picture = make_picture(make_header(size, sampling.components, sampling.h, sampling.v, 1));
        fill(picture, {density, bits, 1 + static_cast<int>(random() % 12)}, random);
        CAPTURE(sampling.components, sampling.h, sampling.v, density, bits, size.width, size.height);
        check_round_trip(picture);
      }
    }
  }
}

TEST_CASE("images of one block, of one column of blocks, and as wide and as tall as they may be, come back",
          "[packed]") {
  std::mt19937 random(18);
  for (const Sampling& sampling : kSamplings) {
    for (const Size size : {Size{5, 1}, Size{8, 8}, Size{8, 700}, Size{65500, 9}, Size{9, 65500}, Size{513, 16}}) {
      Picture picture = make_picture(make_header(size, sampling.components, sampling.h, sampling.v, 3));
      fill(picture, {}, random);
      CAPTURE(sampling.components, sampling.h, sampling.v, size.width, size.height);
      check_round_trip(picture);
    }
  }
}

TEST_CASE("DC levels that differ by any number of bits come back", "[packed]") {
  Picture picture = make_picture(make_header({8 * 32 * 16, 8}, 1, 1, 1, 1));
  for (int width = 0; width < 13; ++width) {
    for (int i = 0; i < kGroupBlocks; ++i) {
      const int most = std::min((1 << width) - 1, 2944);
      picture.block(static_cast<std::size_t>(width * kGroupBlocks + i))[0] =
          static_cast<std::int16_t>(i % 3 == 0   ? -most
                                    : i % 3 == 1 ? most
                                                 : most / 2);
    }
  }
  check_round_trip(picture);
}

// The largest values that each lane of a shape holds, `count` of them and none above `limit`, and as much bitmap.
void fill_for(const ShapeSpec& spec, int count, int limit, std::int16_t* block) {
  for (int rank = 0; rank < count; ++rank) {
    const int width = spec.widths[rank / 8];
    const int most = std::min(width == kWideWidth ? 2048 : std::min(1 << (width - 1), 127), limit);
    const bool last = rank + 1 == count;
    const int at = last ? std::max(1 + rank, 8 * spec.bitmap_bytes) : 1 + rank;
    block[std::min(at, 63)] = static_cast<std::int16_t>(rank % 2 == 0 ? most : -most);
  }
}

// Values that a byte holds go into lanes of 12 bits as well, where those are cheaper.
TEST_CASE("blocks that fit a shape exactly come back, whatever the shape", "[packed]") {
  for (const int limit : {2048, 127}) {
    Picture picture = make_picture(make_header({65500, 8}, 1, 1, 1, 1));
    std::size_t next = 0;
    for (const ShapeSpec& spec : kShapeSpecs) {
      for (int count = 1; count <= std::min(63, 8 * spec.bitmap_bytes); count += count < 9 ? 1 : 5) {
        std::int16_t* const block = picture.block(next);
        fill_for(spec, count, limit, block);
        if (jpeg::is_ordinary(block, *picture.header.quant[2]))
          ++next;
        else
          std::fill_n(block, jpeg::kCoefficients, std::int16_t{0});
      }
    }
    CAPTURE(limit);
    REQUIRE(next > 1000);
    check_round_trip(picture);
  }
}

TEST_CASE("any part of a group is what it is in the whole group", "[packed]") {
  std::mt19937 random(19);
  Picture picture = make_picture(make_header({8 * 29, 8 * 20}, 1, 1, 1, 1));
  fill(picture, {.density = 400, .bits = 12}, random);
  Encoder encoder;
  Placed placed(pack(encoder, picture));
  PackedImage image;
  REQUIRE(image.read(placed.bytes(), Check::kChecksum));
  for (const Target target : every_target()) {
    alignas(64) std::int16_t out[(kGroupBlocks + 1) * jpeg::kCoefficients];
    for (std::size_t group = 0; group < image.grid().groups(); ++group) {
      const unsigned first_of = random() % 29;
      const int first = static_cast<int>(first_of), count = 1 + static_cast<int>(random() % (29 - first_of));
      CAPTURE(name_of(target), group, first, count);
      std::fill(std::begin(out), std::end(out), std::int16_t{-1});
      unpacker(target).unpack(image.group(group), first, count, out);
      const std::int16_t* const expected = picture.block(group * 29 + static_cast<std::size_t>(first));
      REQUIRE(std::equal(expected, expected + count * jpeg::kCoefficients, out));
      REQUIRE(out[count * jpeg::kCoefficients] == -1);
    }
  }
}

TEST_CASE("a grid says which group a block is in", "[packed]") {
  const Grid grid = grid_of(make_header({8 * 2 * 40, 8 * 2 * 3}, 3, 2, 2, 1));

  REQUIRE(grid.groups_in_mcu_row() == 2 * 3 + 2 * 2);
  REQUIRE(grid.groups() == 30);
  REQUIRE(grid.group_of(0, 0, 0, 31) == 0);
  REQUIRE(grid.group_of(0, 0, 1, 32) == 4);
  REQUIRE(grid.group_of(1, 1, 0, 0) == 10 + 6);
  REQUIRE(grid.group_of(2, 2, 0, 39) == 20 + 6 + 2 + 1);
}

TEST_CASE("the worked example of the format is what an encoder writes, to the byte", "[packed]") {
  Picture picture = make_picture(make_header({16, 8}, 1, 1, 1, 16));
  picture.block(0)[0] = 5;
  picture.block(0)[1] = 3;
  picture.block(0)[3] = -1;
  picture.block(1)[0] = 4;
  Bytes expected = {0x4D, 0x52, 0x50, 0x4B, 0x01, 0x01, 0x01, 0x01, 0x10, 0x00, 0x08, 0x00, 0x00, 0x00,
                    0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, 0x01, 0x00, 0x00,
                    0x00, 0x00, 0x00, 0x00, 0x75, 0xF5, 0x58, 0xD5, 0x6A, 0xB2, 0x17, 0x47};
  for (int i = 0; i < 64; ++i) expected.insert(expected.end(), {0x10, 0x00});
  expected.insert(expected.end(), {0x09, 0x00});
  expected.resize(256);
  expected.insert(expected.end(), {0x05, 0x00, 0x01, 0x00, 0x03, 0x00, 0x01, 0x3A, 0x05});

  Encoder encoder;
  CHECK(pack(encoder, picture) == expected);
  check_round_trip(picture);
}

}  // namespace
}  // namespace millrace::kernels::packed
