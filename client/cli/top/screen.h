// The lines that `millrace top` shows in a terminal of any size. Pure functions: what is drawn is what tests read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/cli/top/view.h"

namespace millrace::cli {

enum class Emphasis : std::uint8_t { kPlain, kStrong, kHeading, kSelected, kWarning };

struct TopLine {
  std::string text{};  // at most the screen's width
  Emphasis emphasis = Emphasis::kPlain;
};

struct TopSize {
  std::size_t width = 80, height = 24;
};

// At most `size.height` lines, the last one with keys.
std::vector<TopLine> top_screen(const TopModel& model, const TopView& view, TopSize size);

// How far the page can be scrolled: until its last line is on the screen.
std::size_t most_scrolled(const TopModel& model, const TopView& view, TopSize size);

// The same without an end and without keys, for who reads it elsewhere than on a terminal: the page of sessions.
std::vector<TopLine> top_print(const TopModel& model, std::size_t width);

}  // namespace millrace::cli
