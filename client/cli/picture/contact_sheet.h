// The contact sheet: each sample's original with the crop box, beside what the transform made of it. Pure functions,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cli/picture/canvas.h"

namespace millrace::cli {

struct SheetEntry {
  std::string name;     // the file's
  std::string caption;  // what happened to it
  bool flipped = false;
  std::optional<Picture> original;  // at most `tile` pixels a side; absent: it could not be shown
  std::optional<Rectangle> crop;    // in `original`'s pixels; absent: the whole of it
  std::optional<Picture> result;    // absent: a bad sample
  std::string problem;              // of a bad sample: why
};

enum class Background { kDark, kLight };

struct SheetStyle {
  int tile = 224;  // side of one picture's place
  Background background = Background::kDark;
};

struct SheetTitle {
  std::string first{};
  std::string second{};  // fainter
};

Picture contact_sheet(const SheetTitle& title, const std::vector<SheetEntry>& entries, const SheetStyle& style);

}  // namespace millrace::cli
