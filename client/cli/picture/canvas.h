// An RGB picture in memory to draw on. Everything outside it is clipped. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::cli {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};

// Pixels row by row, interleaved.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<Colour> pixels;

  Colour& at(int x, int y) {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }
  const Colour& at(int x, int y) const { return const_cast<Picture*>(this)->at(x, y); }
};

struct Rectangle {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
};

class Canvas {
 public:
  Canvas(int width, int height, Colour background);

  void fill(const Rectangle& area, Colour colour);
  void outline(const Rectangle& area, int thickness, Colour colour);  // within `area`
  void draw(const Picture& picture, int left, int top);
  void shade_outside(const Rectangle& area, const Rectangle& hole, int percent);  // towards black
  // kTextHeight x scale pixels high; `text`'s bytes outside printable ASCII show as a box.
  void write(std::string_view text, int left, int top, int scale, Colour colour);

  const Picture& picture() const { return picture_; }

 private:
  void set(int x, int y, Colour colour);

  Picture picture_;
};

// A text's width in pixels.
int text_width(std::string_view text, int scale);

// `picture` made smaller to fit into `side` x `side`, each pixel the mean of those it covers; as it is if it fits.
Picture shrink_to_fit(const Picture& picture, int side);

}  // namespace millrace::cli
