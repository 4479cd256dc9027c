// Interleaved 8-bit pictures that somebody else owns, and the two integer shapes that every kernel speaks. Values; they
// allocate nothing.
//
// Rows are `stride` bytes apart (at least width * channels); only the width * channels bytes of a row are ever read or
// written, never the gap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

struct Size {
  int width = 0;
  int height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

// Pixels, origin at the top left.
struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

constexpr Box whole(Size size) {
  return {0, 0, size.width, size.height};
}

struct U8View {
  const std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
  std::ptrdiff_t stride = 0;

  const std::uint8_t* row(int y) const { return data + y * stride; }
  Size size() const { return {width, height}; }

  // REQUIRES: `box` lies inside the view.
  U8View crop(const Box& box) const {
    return {row(box.top) + std::ptrdiff_t{box.left} * channels, box.width, box.height, channels, stride};
  }
};

struct MutableU8View {
  std::uint8_t* data = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
  std::ptrdiff_t stride = 0;

  std::uint8_t* row(int y) const { return data + y * stride; }
  Size size() const { return {width, height}; }
  operator U8View() const { return {data, width, height, channels, stride}; }
};

}  // namespace millrace::kernels
