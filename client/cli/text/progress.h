// How a long work shows that it goes on: one line that is drawn again and again on a terminal, a line every few seconds
// elsewhere, nothing if so wished. Writes to stderr. Thread-bound(its owner).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace millrace::cli {

enum class ProgressStyle { kBar, kLines, kNone };

// kBar on a terminal that can move its cursor; else kLines, or kNone when `quiet_otherwise`.
ProgressStyle progress_style(bool quiet_otherwise);

// "0:07", "12:30", "3:02:10".
std::string clock_text(std::chrono::seconds time);
// "1,234,567".
std::string grouped(std::uint64_t number);
// Of a figure of the daemon's, one below 0 as 0: "1,234,567", and "1.2 MB".
std::string count_text(double figure);
std::string bytes_text(double figure);

struct ProgressState {
  std::string title;            // "epoch 1/3"
  std::string what = "images";  // that are done
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known
  std::uint64_t bytes = 0;  // 0: none are shown
  std::uint64_t bad = 0;
  std::chrono::duration<double> elapsed{};
};

// One line without its end, at most `width` columns; `utf8`, `colour`: what the terminal can show.
struct LineStyle {
  int width = 80;
  bool utf8 = false;
  bool colour = false;
};
std::string progress_line(const ProgressState& state, const LineStyle& style);

class Progress {
 public:
  explicit Progress(ProgressStyle style) : style_(style) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);  // as often as one likes; draws when it is due
  void clear();                             // takes the bar away, before other lines are printed

 private:
  ProgressStyle style_;
  std::chrono::steady_clock::time_point due_{};
  bool drawn_ = false;
};

}  // namespace millrace::cli
