// Version 1: what was written comes back, a file made by hand is read as its authors' decoder reads it, and bad files are
// refused.
#include <catch2/catch.hpp>
#include <random>

#include "kernels/l3/version1.h"

namespace millrace::kernels::l3 {
namespace {

using Bytes1 = std::vector<std::uint8_t>;

struct Rgb {
  Size size;
  Bytes1 data;

  SampleView view() const { return {data.data(), size, 3, 1, std::ptrdiff_t{size.width} * 3}; }
};

Rgb drawn_rgb(Size size, int kind) {
  Rgb rgb{size, {}};
  std::mt19937 random(5);
  for (int i = 0; i < size.width * size.height * 3; ++i) {
    const auto noise = static_cast<unsigned>(random());
    const unsigned value = kind == 0   ? noise
                           : kind == 1 ? static_cast<unsigned>(i / 9) + noise % 4
                           : kind == 2 ? (noise % 2) * 255
                           : kind == 3 ? 0
                                       : noise % 3;  // zeros among small numbers
    rgb.data.push_back(static_cast<std::uint8_t>(value));
  }
  return rgb;
}

Rgb part_of(const Version1Image& image, const Box& box) {
  Rgb part{{box.width, box.height}, Bytes1(static_cast<std::size_t>(box.width * box.height * 3))};
  REQUIRE(image.decode(box, {}, {part.data.data(), part.size, 3, 1, std::ptrdiff_t{box.width} * 3}) ==
          Version1Image::Outcome::kFine);
  return part;
}

// README.md's text, bit by bit: row `y` of a patch, from its bytes and the row above.
Bytes1 row_by_the_text(const Bytes1& bytes, const Bytes1& above, bool is_first) {
  std::size_t bit = 0;
  const auto next = [&](int count) {
    unsigned number = 0;
    for (int i = 0; i < count; ++i, ++bit) number |= (bytes[bit / 8] >> (bit % 8) & 1U) << i;
    return number;
  };
  const int n = static_cast<int>(next(4));
  const unsigned base = next(8);
  Bytes1 row;
  for (std::size_t x = 0; x < above.size(); ++x) {
    const unsigned residual = next(n) + base;
    const int a = x > 0 ? above[x - 1] : 0, b = above[x], c = x + 1 < above.size() ? above[x + 1] : 0;
    const int p = a + c - b, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
    int guess = 0;
    if (a == 0)
      guess = pb <= pc ? b : c;
    else if (c == 0)
      guess = pa <= pb ? a : b;
    else if (pa <= pb && pa <= pc)
      guess = a;
    else
      guess = pa <= pc ? b : c;
    row.push_back(static_cast<std::uint8_t>((is_first ? 0 : guess) + static_cast<int>(residual)));
  }
  return row;
}

}  // namespace

TEST_CASE("a picture comes back from version 1, whole and in parts", "[l3]") {
  const int kind = GENERATE(0, 1, 2, 3, 4), patch = GENERATE(32, 64, 128);
  const Rgb rgb = drawn_rgb({2 * patch, patch}, kind);
  Bytes1 file;
  REQUIRE(encode_version1({rgb.view()}, file, patch).empty());
  Version1Image image;
  REQUIRE(image.read(file).empty());

  REQUIRE(part_of(image, whole(rgb.size)).data == rgb.data);
  const Box box{patch - 5, 3, 11, 7};
  const Rgb part = part_of(image, box);
  for (int y = 0; y < box.height; ++y) {
    const std::uint8_t* const row = rgb.view().row(box.top + y) + 3 * box.left;
    REQUIRE(std::equal(row, row + 3 * box.width, part.view().row(y)));
  }
}

TEST_CASE("rows made by hand are what the published decoder makes of them", "[l3]") {
  std::mt19937 random(8);
  constexpr int kSide = 32;
  Bytes1 file{'L', 'L', 'L', '.', kSide, 0, 0, 0, kSide, 0, 0, 0, kSide};
  Bytes1 expected[3], data;
  for (Bytes1& plane : expected) {
    const std::size_t begin = data.size();
    Bytes1 above(kSide);
    for (int y = 0; y < kSide; ++y) {
      const auto n = static_cast<unsigned>(random() % 9);
      Bytes1 row(2 + kSide * n / 8);
      for (std::uint8_t& byte : row) byte = static_cast<std::uint8_t>(random());
      row[0] = static_cast<std::uint8_t>((row[0] & 0xF0U) | n);
      above = row_by_the_text(row, above, y == 0);
      plane.insert(plane.end(), above.begin(), above.end());
      data.insert(data.end(), row.begin(), row.end());
    }
    file.push_back(static_cast<std::uint8_t>(data.size() - begin));
    file.push_back(static_cast<std::uint8_t>((data.size() - begin) >> 8U));
  }
  file.insert(file.end(), data.begin(), data.end());
  Version1Image image;

  REQUIRE(image.read(file).empty());
  const Rgb found = part_of(image, {0, 0, kSide, kSide});
  for (std::size_t i = 0; i < found.data.size(); ++i) REQUIRE(found.data[i] == expected[i % 3][i / 3]);
}

TEST_CASE("files of version 1 that are cut off, go on or do not add up are refused", "[l3]") {
  const Rgb rgb = drawn_rgb({64, 32}, 1);
  Bytes1 file;
  REQUIRE(encode_version1({rgb.view()}, file, 32).empty());
  Version1Image image;
  for (std::size_t size = 4; size < file.size(); size += 7) {
    const Bytes1 part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE(image.read(part) == "cut off");
  }
  Bytes1 longer = file;
  longer.push_back(0);
  REQUIRE(image.read(longer) == "1 bytes follow its last patch");

  Bytes1 moved = file;  // a byte of the first patch goes to the second one
  --moved[13], ++moved[15];
  REQUIRE(image.read(moved).empty());
  Bytes1 pixels(64 * 32 * 3);
  REQUIRE(image.decode({0, 0, 64, 32}, {}, {pixels.data(), {64, 32}, 3, 1, 192}) == Version1Image::Outcome::kBroken);
}

TEST_CASE("any bytes of version 1 are refused or make pixels", "[l3]") {
  std::mt19937 random(2);
  const Rgb rgb = drawn_rgb({32, 32}, 1);
  Bytes1 good;
  REQUIRE(encode_version1({rgb.view()}, good, 32).empty());
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes1 file = good;
    file[random() % (i % 2 == 0 ? 20 : file.size())] = static_cast<std::uint8_t>(random());
    file.shrink_to_fit();
    Version1Image image;
    Bytes1 pixels(32 * 32 * 3);
    const bool is_fine =
        image.read(file).empty() && image.head().size == rgb.size &&
        image.decode({0, 0, 32, 32}, {}, {pixels.data(), rgb.size, 3, 1, 96}) == Version1Image::Outcome::kFine;
    refused += is_fine ? 0 : 1;
  }
  REQUIRE(refused > 100);
  REQUIRE(refused < 2000);
}

TEST_CASE("sides and pixels that version 1 cannot hold are refused", "[l3]") {
  const Rgb rgb = drawn_rgb({96, 32}, 0);
  Bytes1 out;
  Bytes1 odd{'L', 'L', 'L', '.', 33, 0, 0, 0, 32, 0, 0, 0, 32};
  Version1Head head;

  CHECK(encode_version1({rgb.view()}, out) == "sides that are no multiple of 64");
  CHECK(encode_version1({{rgb.data.data(), {64, 64}, 1, 1, 64}}, out) == "other than RGB of 8 bits");
  CHECK(encode_version1({.samples = rgb.view(), .orientation = 3}, out, 32) == "an orientation");
  CHECK(read_version1_head(odd, head) == "its size is 33x32, and its encoder drops what is beyond a multiple of 32");
  odd[12] = 16;
  CHECK(read_version1_head(odd, head) == "its patches have 16 pixels a side");
}

}  // namespace millrace::kernels::l3
