#include "client/cli/top/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>

#include "client/cli/text/progress.h"
#include "client/cli/top/text_columns.h"
#include "proto/base/bytes.h"

namespace millrace::cli {
namespace {

struct TopColumn {
  const char* title;
  std::size_t least, most;  // columns of the screen
  Align align;
  int importance;  // the smaller, the longer it stays
  std::optional<TopSort> sort;
  std::function<std::string(const TopSession&)> text;
};

std::string tenths(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", number);
  return text.data();
}

std::string slots_of(const TopSession& session) {
  return std::to_string(session.slots - std::min(session.slots_free, session.slots)) + "/" +
         std::to_string(session.slots);
}

std::string sentence(const TopSession& session) {
  return session.causes.empty() ? "" : session.causes.front().text;
}

// In their order on the screen.
const std::vector<TopColumn>& top_columns() {
  using S = TopSession;
  static const std::vector<TopColumn> kColumns{
      {"ID", 4, 8, Align::kRight, 3, TopSort::kId, [](const S& s) { return std::to_string(s.id); }},
      {"SESSION", 11, 32, Align::kLeft, 0, TopSort::kSession, [](const S& s) { return s.name; }},
      {"USER", 7, 16, Align::kLeft, 5, TopSort::kUser, [](const S& s) { return s.user; }},
      {"JOB", 9, 32, Align::kLeft, 7, TopSort::kJob, [](const S& s) { return s.job; }},
      {"IMAGES/S", 9, 10, Align::kRight, 1, TopSort::kRate,
       [](const S& s) { return images_text(s.images_per_second); }},
      {"WAITED", 7, 7, Align::kRight, 2, TopSort::kWaited, [](const S& s) { return share_text(s.waited); }},
      {"CAUSE", 14, 24, Align::kLeft, 4, TopSort::kCause, [](const S& s) { return s.cause; }},
      {"SLOTS", 5, 9, Align::kRight, 6, std::nullopt, slots_of},
      {"LANES", 6, 6, Align::kRight, 8, TopSort::kLanes, [](const S& s) { return tenths(s.lanes); }},
      {"PID", 8, 8, Align::kRight, 9, std::nullopt, [](const S& s) { return std::to_string(s.pid); }},
      {"BATCHES", 9, 11, Align::kRight, 10, std::nullopt, [](const S& s) { return grouped(s.batches); }},
      {"BAD", 6, 9, Align::kRight, 11, std::nullopt, [](const S& s) { return grouped(s.bad); }},
      {"MEMORY", 9, 9, Align::kRight, 12, std::nullopt, [](const S& s) { return to_text(s.memory); }},
      {"WHY", 30, 400, Align::kLeft, 13, std::nullopt, sentence},
  };
  return kColumns;
}

constexpr std::size_t kGap = 1;

// A column's place on the screen. 0: it has none.
using Widths = std::vector<std::size_t>;

Widths shown_in(std::size_t width) {
  std::vector<std::size_t> by_importance;
  for (std::size_t i = 0; i < top_columns().size(); ++i) by_importance.push_back(i);
  std::ranges::sort(by_importance, {}, [](std::size_t i) { return top_columns()[i].importance; });
  Widths widths(top_columns().size(), 0);
  std::size_t used = 0;
  for (const std::size_t i : by_importance) {
    const std::size_t wanted = top_columns()[i].least + (used == 0 ? 0 : kGap);
    if (used + wanted > width) break;
    widths[i] = top_columns()[i].least;
    used += wanted;
  }
  return widths;
}

// Gives what is left to columns whose text is cut, the first ones first.
void widen(Widths& widths, const std::vector<const TopSession*>& sessions, std::size_t width) {
  std::size_t used = 0;
  for (const std::size_t one : widths) used += one == 0 ? 0 : one + (used == 0 ? 0 : kGap);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    std::size_t wanted = widths[i];
    for (const TopSession* session : sessions) wanted = std::max(wanted, columns_of(top_columns()[i].text(*session)));
    const std::size_t more = std::min(std::min(wanted, top_columns()[i].most) - widths[i], width - used);
    widths[i] += more;
    used += more;
  }
}

std::string line_of(const Widths& widths, const std::function<std::string(const TopColumn&)>& cell) {
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    const TopColumn& column = top_columns()[i];
    line += (line.empty() ? "" : " ") + fitted(cell(column), widths[i], column.align);
  }
  return line;
}

// With an arrow where it is the one that is sorted by: down from the largest, or from A.
std::string title_of(const TopColumn& column, const TopView& view) {
  if (column.sort != view.sort) return column.title;
  return column.title + std::string(view.is_reversed ? "\u2191" : "\u2193");
}

}  // namespace

std::string share_text(std::optional<double> share) {
  if (!share) return "-";
  return std::to_string(std::lround(100 * *share)) + " %";
}

std::string images_text(double images_per_second) {
  return images_per_second < 10 ? tenths(images_per_second)
                                : grouped(static_cast<std::uint64_t>(images_per_second + 0.5));
}

TopTable top_table(const std::vector<const TopSession*>& sessions, const TopView& view, std::size_t width) {
  Widths widths = shown_in(width);
  widen(widths, sessions, width);
  TopTable table;
  table.heading = line_of(widths, [&](const TopColumn& column) { return title_of(column, view); });
  for (const TopSession* session : sessions)
    table.rows.push_back(line_of(widths, [&](const TopColumn& column) { return column.text(*session); }));
  return table;
}

}  // namespace millrace::cli
