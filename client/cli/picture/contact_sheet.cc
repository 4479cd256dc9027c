#include "client/cli/picture/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "client/cli/picture/font.h"

namespace millrace::cli {
namespace {

constexpr int kMargin = 28;  // around the sheet
constexpr int kGutter = 28;  // between samples
constexpr int kGap = 10;     // between original and result
constexpr int kTextScale = 2;
constexpr int kLine = (kGlyphHeight + 3) * kTextScale;
constexpr int kCaption = 10 + 2 * kLine;
constexpr int kTitle = 3 * kLine;

struct Palette {
  Colour sheet;
  Colour place;  // behind a picture that does not fill its place
  Colour text;
  Colour faint;
  Colour accent;  // crop boxes, flips
  Colour bad;
};
constexpr Palette kDark{{30, 31, 33}, {42, 43, 46}, {226, 227, 230}, {142, 145, 152}, {255, 179, 0}, {232, 92, 80}};
constexpr Palette kLight{{244, 244, 245}, {228, 229, 231}, {32, 33, 36}, {110, 113, 120}, {214, 110, 0}, {190, 40, 30}};

// `text` cut to `width` pixels, in the middle, because both ends of a file's name tell.
std::string fitted(const std::string& text, int width) {
  const int most = std::max(4, width / text_width("x", kTextScale));
  if (static_cast<int>(text.size()) <= most) return text;
  const auto head = static_cast<std::size_t>((most - 2) / 2);
  const auto tail = static_cast<std::size_t>(most - 2) - head;
  return text.substr(0, head) + ".." + text.substr(text.size() - tail);
}

std::vector<std::string> wrapped(std::string text, int width, std::size_t lines) {
  const auto most = static_cast<std::size_t>(std::max(4, width / text_width("x", kTextScale)));
  std::vector<std::string> out;
  while (!text.empty() && out.size() < lines) {
    std::size_t cut = std::min(most, text.size());
    if (cut < text.size()) {
      const auto space = text.rfind(' ', cut);
      if (space != std::string::npos && space > most / 2) cut = space;
    }
    out.push_back(text.substr(0, cut));
    text.erase(0, std::min(text.size(), cut + (cut < text.size() && text[cut] == ' ' ? 1 : 0)));
  }
  return out;
}

void draw_original(Canvas& canvas, const SheetEntry& entry, int left, int top, const SheetStyle& style,
                   const Palette& palette) {
  canvas.fill({left, top, style.tile, style.tile}, palette.place);
  if (!entry.original) return;
  const int x = left + (style.tile - entry.original->width) / 2;
  const int y = top + (style.tile - entry.original->height) / 2;
  canvas.draw(*entry.original, x, y);
  if (!entry.crop) return;
  const Rectangle box{x + entry.crop->left, y + entry.crop->top, entry.crop->width, entry.crop->height};
  canvas.shade_outside({x, y, entry.original->width, entry.original->height}, box, 55);
  canvas.outline({box.left - 1, box.top - 1, box.width + 2, box.height + 2}, 1, {0, 0, 0});
  canvas.outline(box, 2, palette.accent);
}

void draw_result(Canvas& canvas, const SheetEntry& entry, int left, int top, const SheetStyle& style,
                 const Palette& palette) {
  canvas.fill({left, top, style.tile, style.tile}, palette.place);
  if (entry.result) {
    const Picture shown = shrink_to_fit(*entry.result, style.tile);
    canvas.draw(shown, left + (style.tile - shown.width) / 2, top + (style.tile - shown.height) / 2);
    return;
  }
  canvas.outline({left, top, style.tile, style.tile}, 2, palette.bad);
  const std::vector<std::string> lines =
      wrapped(entry.problem, style.tile - 24, static_cast<std::size_t>((style.tile - 24) / kLine));
  int y = top + (style.tile - static_cast<int>(lines.size()) * kLine) / 2;
  for (const std::string& line : lines) {
    canvas.write(line, left + 12, y, kTextScale, palette.bad);
    y += kLine;
  }
}

void draw_entry(Canvas& canvas, const SheetEntry& entry, int left, int top, const SheetStyle& style,
                const Palette& palette) {
  const int width = 2 * style.tile + kGap;
  draw_original(canvas, entry, left, top, style, palette);
  draw_result(canvas, entry, left + style.tile + kGap, top, style, palette);
  const std::string flipped = entry.flipped ? "flipped" : "";
  const int below = top + style.tile + 10;
  canvas.write(fitted(entry.name, width), left, below, kTextScale, palette.text);
  canvas.write(fitted(entry.caption, width - text_width(flipped + " ", kTextScale)), left, below + kLine, kTextScale,
               palette.faint);
  canvas.write(flipped, left + width - text_width(flipped, kTextScale) + kTextScale, below + kLine, kTextScale,
               palette.accent);
}

// As many columns as make the sheet about 4 : 3.
int columns_for(int entries, int cell_width, int cell_height) {
  const double wish = std::sqrt(4.0 / 3.0 * entries * cell_height / cell_width);
  return std::clamp(static_cast<int>(wish + 0.5), 1, std::max(entries, 1));
}

}  // namespace

Picture contact_sheet(const SheetTitle& title, const std::vector<SheetEntry>& entries, const SheetStyle& style) {
  const Palette& palette = style.background == Background::kDark ? kDark : kLight;
  const int cell_width = 2 * style.tile + kGap + kGutter;
  const int cell_height = style.tile + kCaption + kGutter;
  const int count = static_cast<int>(entries.size());
  const int columns = columns_for(count, cell_width, cell_height);
  const int rows = (count + columns - 1) / columns;
  const int width = 2 * kMargin + columns * cell_width - kGutter;
  Canvas canvas(width, 2 * kMargin + kTitle + std::max(rows, 1) * cell_height - kGutter, palette.sheet);
  canvas.write(fitted(title.first, width - 2 * kMargin), kMargin, kMargin, kTextScale, palette.text);
  canvas.write(fitted(title.second, width - 2 * kMargin), kMargin, kMargin + kLine, kTextScale, palette.faint);
  for (int i = 0; i < count; ++i) {
    const int left = kMargin + i % columns * cell_width;
    const int top = kMargin + kTitle + i / columns * cell_height;
    draw_entry(canvas, entries[static_cast<std::size_t>(i)], left, top, style, palette);
  }
  return canvas.picture();
}

}  // namespace millrace::cli
