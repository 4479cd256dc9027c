#include "client/cli/text/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "proto/base/bytes.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::milliseconds kBarEvery{100};
constexpr std::chrono::milliseconds kLineEvery{5'000};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

LineStyle terminal_style() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  std::string locale = variable("LC_ALL");
  if (locale.empty()) locale = variable("LC_CTYPE");
  if (locale.empty()) locale = variable("LANG");
  const bool utf8 = locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return {.width = known ? size.ws_col : 80, .utf8 = utf8, .colour = variable("NO_COLOR").empty()};
}

std::string bar(double share, int cells, const LineStyle& style) {
  const int full = std::clamp(static_cast<int>(share * cells), 0, cells);
  const char* filled = style.utf8 ? "\u2501" : "#";
  const char* open = style.utf8 ? "\u2501" : ".";
  std::string text = style.colour ? "\x1b[36m" : "";
  for (int i = 0; i < full; ++i) text += filled;
  if (style.colour) text += "\x1b[90m";
  for (int i = full; i < cells; ++i) text += style.colour || !style.utf8 ? open : "\u2500";
  return text + (style.colour ? "\x1b[0m" : "");
}

std::string figures(const ProgressState& state) {
  const double seconds = std::max(state.elapsed.count(), 1e-6);
  const double rate = static_cast<double>(state.done) / seconds;
  std::string text = grouped(state.done);
  if (state.total != 0) text += "/" + grouped(state.total);
  text += "  " + grouped(static_cast<std::uint64_t>(rate + 0.5)) + " " + state.what + "/s";
  if (state.bytes > 0)
    text += "  " + to_text(Bytes{static_cast<std::uint64_t>(static_cast<double>(state.bytes) / seconds)}) + "/s";
  text += "  " + grouped(state.bad) + " bad";
  const std::uint64_t past = state.done + state.bad;
  if (state.total > past && past > 0) {
    const double left = seconds / static_cast<double>(past) * static_cast<double>(state.total - past);
    text += "  " + clock_text(std::chrono::seconds(static_cast<std::int64_t>(left + 0.5))) + " left";
  }
  return text;
}

}  // namespace

ProgressStyle progress_style(bool quiet_otherwise) {
  const std::string term = variable("TERM");
  if (::isatty(STDERR_FILENO) != 0 && !term.empty() && term != "dumb") return ProgressStyle::kBar;
  return quiet_otherwise ? ProgressStyle::kNone : ProgressStyle::kLines;
}

std::string clock_text(std::chrono::seconds time) {
  std::array<char, 32> text{};
  const auto seconds = static_cast<long long>(time.count());
  if (seconds < 3600) {
    std::snprintf(text.data(), text.size(), "%lld:%02lld", seconds / 60, seconds % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return text.data();
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string count_text(double figure) {
  return grouped(static_cast<std::uint64_t>(std::max(0.0, figure)));
}

std::string bytes_text(double figure) {
  return to_text(Bytes{static_cast<std::uint64_t>(std::max(0.0, figure))});
}

std::string progress_line(const ProgressState& state, const LineStyle& style) {
  const std::string right = figures(state);
  const int used = static_cast<int>(state.title.size() + right.size()) + 4;
  const int room = style.width - used - 6;
  std::string line = state.title + "  ";
  if (state.total != 0) {
    const double share = std::min(1.0, static_cast<double>(state.done + state.bad) / static_cast<double>(state.total));
    std::array<char, 8> percent{};
    std::snprintf(percent.data(), percent.size(), "%3d%% ", static_cast<int>(share * 100));
    line += percent.data();
    if (room >= 8) line += bar(share, std::min(room, 40), style) + "  ";
    return line + right;
  }
  return line + right;
}

void Progress::update(const ProgressState& state) {
  const auto now = std::chrono::steady_clock::now();
  if (style_ == ProgressStyle::kNone || now < due_) return;
  if (style_ == ProgressStyle::kBar) {
    std::fprintf(stderr, "\r%s\x1b[K", progress_line(state, terminal_style()).c_str());
    drawn_ = true;
    due_ = now + kBarEvery;
  } else {
    if (due_.time_since_epoch().count() != 0) std::fprintf(stderr, "%s\n", progress_line(state, {.width = 0}).c_str());
    due_ = now + kLineEvery;
  }
}

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
  due_ = {};
}

}  // namespace millrace::cli
