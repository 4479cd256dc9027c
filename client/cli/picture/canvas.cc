#include "client/cli/picture/canvas.h"

#include <algorithm>

#include "client/cli/picture/font.h"

namespace millrace::cli {

Canvas::Canvas(int width, int height, Colour background)
    : picture_{width, height,
               std::vector<Colour>(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), background)} {}

void Canvas::set(int x, int y, Colour colour) {
  if (x >= 0 && y >= 0 && x < picture_.width && y < picture_.height) picture_.at(x, y) = colour;
}

void Canvas::fill(const Rectangle& area, Colour colour) {
  for (int y = area.top; y < area.top + area.height; ++y) {
    for (int x = area.left; x < area.left + area.width; ++x) set(x, y, colour);
  }
}

void Canvas::outline(const Rectangle& area, int thickness, Colour colour) {
  fill({area.left, area.top, area.width, thickness}, colour);
  fill({area.left, area.top + area.height - thickness, area.width, thickness}, colour);
  fill({area.left, area.top, thickness, area.height}, colour);
  fill({area.left + area.width - thickness, area.top, thickness, area.height}, colour);
}

void Canvas::draw(const Picture& picture, int left, int top) {
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) set(left + x, top + y, picture.at(x, y));
  }
}

void Canvas::shade_outside(const Rectangle& area, const Rectangle& hole, int percent) {
  const auto shaded = [&](std::uint8_t value) { return static_cast<std::uint8_t>(value * (100 - percent) / 100); };
  for (int y = std::max(area.top, 0); y < std::min(area.top + area.height, picture_.height); ++y) {
    for (int x = std::max(area.left, 0); x < std::min(area.left + area.width, picture_.width); ++x) {
      const bool inside = x >= hole.left && x < hole.left + hole.width && y >= hole.top && y < hole.top + hole.height;
      if (inside) continue;
      Colour& pixel = picture_.at(x, y);
      pixel = {shaded(pixel.red), shaded(pixel.green), shaded(pixel.blue)};
    }
  }
}

void Canvas::write(std::string_view text, int left, int top, int scale, Colour colour) {
  for (const char c : text) {
    const Glyph& glyph = glyph_of(c);
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < kGlyphWidth; ++column) {
        if ((glyph[static_cast<std::size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) == 0) continue;
        fill({left + column * scale, top + row * scale, scale, scale}, colour);
      }
    }
    left += (kGlyphWidth + 1) * scale;
  }
}

int text_width(std::string_view text, int scale) {
  return static_cast<int>(text.size()) * (kGlyphWidth + 1) * scale;
}

Picture shrink_to_fit(const Picture& picture, int side) {
  const int longer = std::max(picture.width, picture.height);
  if (longer <= side) return picture;
  Picture small{std::max(1, picture.width * side / longer), std::max(1, picture.height * side / longer), {}};
  small.pixels.resize(static_cast<std::size_t>(small.width) * static_cast<std::size_t>(small.height));
  for (int y = 0; y < small.height; ++y) {
    const int top = y * picture.height / small.height;
    const int bottom = std::max(top + 1, (y + 1) * picture.height / small.height);
    for (int x = 0; x < small.width; ++x) {
      const int left = x * picture.width / small.width;
      const int right = std::max(left + 1, (x + 1) * picture.width / small.width);
      int red = 0;
      int green = 0;
      int blue = 0;
      for (int v = top; v < bottom; ++v) {
        for (int u = left; u < right; ++u) {
          red += picture.at(u, v).red;
          green += picture.at(u, v).green;
          blue += picture.at(u, v).blue;
        }
      }
      const int count = (bottom - top) * (right - left);
      small.at(x, y) = {static_cast<std::uint8_t>(red / count), static_cast<std::uint8_t>(green / count),
                        static_cast<std::uint8_t>(blue / count)};
    }
  }
  return small;
}

}  // namespace millrace::cli
