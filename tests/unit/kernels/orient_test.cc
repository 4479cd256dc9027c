#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/orient.h"

using namespace millrace::kernels;

namespace {

struct Picture {
  std::vector<std::uint8_t> bytes;
  MutableU8View view;

  Picture(Size size, int channels) : bytes(static_cast<std::size_t>(size.width) * size.height * channels) {
    view = {bytes.data(), size.width, size.height, channels, std::ptrdiff_t{size.width} * channels};
  }
};

Picture noise(Size size, int channels, unsigned seed) {
  std::mt19937 random(seed);
  Picture picture(size, channels);
  for (std::uint8_t& byte : picture.bytes) byte = static_cast<std::uint8_t>(random());
  return picture;
}

Picture turned(const Picture& picture, Orientation orientation) {
  Picture out(oriented(picture.view.size(), orientation), picture.view.channels);
  orient(picture.view, orientation, out.view);
  return out;
}

Picture cropped(const Picture& picture, const Box& box) {
  Picture out({box.width, box.height}, picture.view.channels);
  orient(U8View(picture.view).crop(box), Orientation::kUpright, out.view);
  return out;
}

}  // namespace

TEST_CASE("every orientation turns known pixels as EXIF says", "[kernels][orient]") {
  Picture stored({3, 2}, 1);
  stored.bytes = {1, 2, 3,  //
                  4, 5, 6};
  stored.view.data = stored.bytes.data();
  const auto pixels = [&](int tag) { return turned(stored, orientation_of(tag)).bytes; };
  using Bytes = std::vector<std::uint8_t>;

  REQUIRE(pixels(1) == Bytes{1, 2, 3, 4, 5, 6});
  REQUIRE(pixels(2) == Bytes{3, 2, 1, 6, 5, 4});
  REQUIRE(pixels(3) == Bytes{6, 5, 4, 3, 2, 1});
  REQUIRE(pixels(4) == Bytes{4, 5, 6, 1, 2, 3});
  REQUIRE(pixels(5) == Bytes{1, 4, 2, 5, 3, 6});
  REQUIRE(pixels(6) == Bytes{4, 1, 5, 2, 6, 3});
  REQUIRE(pixels(7) == Bytes{6, 3, 5, 2, 4, 1});
  REQUIRE(pixels(8) == Bytes{3, 6, 2, 5, 1, 4});
}

TEST_CASE("the fast turn equals the slow one for every size and channel count", "[kernels][orient]") {
  for (const int channels : {1, 3, 4}) {
    for (const Size size : {Size{1, 1}, Size{7, 1}, Size{1, 9}, Size{33, 31}, Size{100, 65}}) {
      const Picture stored = noise(size, channels, 1);
      for (int tag = 1; tag <= 8; ++tag) {
        const Orientation orientation = orientation_of(tag);
        Picture slow(oriented(size, orientation), channels);
        reference::orient(stored.view, orientation, slow.view);

        INFO("orientation " << tag << ", " << channels << " channels, " << size.width << "x" << size.height);
        REQUIRE(turned(stored, orientation).bytes == slow.bytes);
      }
    }
  }
}

TEST_CASE("a quarter turn and the one the other way, or any other orientation twice, give the picture back",
          "[kernels][orient]") {
  const auto undoing = [](Orientation orientation) {
    if (orientation == Orientation::kRotate90) return Orientation::kRotate270;
    return orientation == Orientation::kRotate270 ? Orientation::kRotate90 : orientation;
  };
  const Picture stored = noise({37, 53}, 3, 2);
  for (int tag = 1; tag <= 8; ++tag) {
    const Orientation orientation = orientation_of(tag);

    const Picture back = turned(turned(stored, orientation), undoing(orientation));

    INFO("orientation " << tag);
    REQUIRE(back.view.size() == stored.view.size());
    REQUIRE(back.bytes == stored.bytes);
  }
}

TEST_CASE("cropping before the turn equals cropping after it", "[kernels][orient]") {
  std::mt19937 random(3);
  const Size size{40, 27};
  const Picture stored = noise(size, 3, 4);
  for (int round = 0; round < 400; ++round) {
    const Orientation orientation = orientation_of(static_cast<int>(random() % 8) + 1);
    const Size upright = oriented(size, orientation);
    Box box;
    box.width = 1 + static_cast<int>(random() % upright.width);
    box.height = 1 + static_cast<int>(random() % upright.height);
    box.left = static_cast<int>(random() % (upright.width - box.width + 1));
    box.top = static_cast<int>(random() % (upright.height - box.height + 1));

    const Picture before = turned(cropped(stored, stored_box(box, size, orientation)), orientation);

    REQUIRE(before.bytes == cropped(turned(stored, orientation), box).bytes);
  }
}

TEST_CASE("an orientation tag out of range counts as upright", "[kernels][orient]") {
  for (const int tag : {-1, 0, 9, 255, 65535}) REQUIRE(orientation_of(tag) == Orientation::kUpright);
}
