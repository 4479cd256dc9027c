#include "client/cli/top/screen.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/cli/text/progress.h"
#include "client/cli/top/table.h"
#include "client/cli/top/text_columns.h"
#include "proto/base/bytes.h"

namespace millrace::cli {
namespace {

using TopLines = std::vector<TopLine>;

constexpr const char* kSessionKeys = "Enter why   Up/Down choose   Left/Right sort   p pause   h help   q quit";
constexpr const char* kPageKeys = "Esc back   Up/Down scroll   p pause   h help   q quit";
constexpr const char* kShortKeys = "Enter why  h help  q quit";

std::string counted(std::size_t number, const std::string& what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

std::string headline(const TopModel& model, const TopView& view) {
  return "millraced " + model.version + "   pid " + std::to_string(model.pid) + "   up " + clock_text(model.uptime) +
         "   " + counted(model.sessions.size(), "session") + "   " + images_text(model.images_per_second) +
         " images/s" + (view.is_paused ? "   PAUSED" : "");
}

std::string device_text(const TopDevice& device) {
  if (!device.is_ready) return device.name + ": lost";
  return device.name + ": " + counted(device.lanes, "lane") + ", " + images_text(device.images_per_second) +
         " images/s";
}

// As many as a line has room for.
TopLine device_line(const TopModel& model, std::size_t width) {
  TopLine line{.text = "devices  "};
  std::size_t shown = 0;
  for (const TopDevice& device : model.devices) {
    if (!device.is_ready) line.emphasis = Emphasis::kWarning;
    const std::string more = (shown == 0 ? "" : "   ") + device_text(device);
    constexpr std::size_t kForRest = 12;  // "   +12 more"
    const bool is_last = shown + 1 == model.devices.size();
    if (columns_of(line.text + more) + (is_last ? 0 : kForRest) > width && shown > 0) break;
    line.text += more;
    ++shown;
  }
  if (shown < model.devices.size()) line.text += "   +" + std::to_string(model.devices.size() - shown) + " more";
  return line;
}

std::string cache_text(const TopModel& model) {
  std::string text =
      "cache    " + to_text(model.kept_in_memory) + " in memory, " + to_text(model.kept_on_disk) + " on disk";
  if (model.kept_hits) text += "; " + share_text(model.kept_hits) + " of images were kept";
  return text;
}

std::string memory_text(const TopModel& model) {
  return "memory   " + to_text(model.tensors) + " tensors, " + to_text(model.encoded) + " encoded, " +
         to_text(model.decoding) + " decoding, " + to_text(model.requests) + " requests";
}

// What stands above every page.
TopLines top_of(const TopModel& model, const TopView& view, std::size_t width) {
  if (!model.gone.empty()) {
    TopLines lines{{"millrace top" + std::string(view.is_paused ? "   PAUSED" : ""), Emphasis::kStrong}, {}};
    for (const std::string& line : broken(model.gone, width)) lines.push_back({line, Emphasis::kWarning});
    lines.push_back({"This goes on when the daemon is there."});
    return lines;
  }
  return {{headline(model, view), Emphasis::kStrong},
          device_line(model, width),
          {cache_text(model)},
          {memory_text(model)},
          {}};
}

// A window of so many rows in which the selected one is.
std::size_t first_row(std::size_t selected, std::size_t rows, std::size_t room) {
  if (rows <= room) return 0;
  return std::min(selected < room / 2 ? 0 : selected - room / 2, rows - room);
}

// `room` lines, heading included.
TopLines session_lines(const TopModel& model, const TopView& view, std::size_t width, std::size_t room) {
  const auto sessions = in_order(model, view);
  const TopTable table = top_table(sessions, view, width);
  TopLines lines{{table.heading, Emphasis::kHeading}};
  if (sessions.empty()) lines.push_back({"No session is open."});
  const std::size_t rows = room > 1 ? room - 1 : 0;
  const std::size_t selected = selected_of(sessions, view);
  const std::size_t first = first_row(selected, sessions.size(), rows);
  for (std::size_t i = first; i < std::min(first + rows, sessions.size()); ++i)
    lines.push_back({table.rows[i], i == selected ? Emphasis::kSelected : Emphasis::kPlain});
  return lines;
}

// Behind `before`, and further lines beneath where it began.
void add_text(TopLines& lines, std::string before, const std::string& text, std::size_t width) {
  const std::size_t room = width > before.size() + 10 ? width - before.size() : 10;
  for (const std::string& line : broken(text, room)) {
    lines.push_back({before + line});
    before.assign(before.size(), ' ');
  }
}

std::string session_title(const TopSession& session) {
  return "session " + std::to_string(session.id) + " \"" + session.name + "\" of " + session.user + ", job \"" +
         session.job + "\"";
}

std::string waiting_text(const TopModel& model, const TopSession& session) {
  std::string text = images_text(session.images_per_second) + " images/s";
  if (session.waited)
    text += "; the program waited " + share_text(session.waited) + " of the time";
  else
    text += "; the program does not say how long it waits: shares are of the session's time";
  if (model.explains && session.time.count() > 0)
    text += " (last " + clock_text(std::chrono::seconds(std::lround(session.time.count()))) + ")";
  return text;
}

void add_cause(TopLines& lines, const TopCause& cause, std::size_t width) {
  lines.push_back({});
  lines.push_back({share_text(cause.share) + "  " + cause.code, Emphasis::kStrong});
  add_text(lines, "  ", cause.text, width);
  if (!cause.advice.empty()) add_text(lines, "  -> ", cause.advice, width);
  if (cause.images_per_second > 0)
    add_text(lines, "  ", "Without it: some " + images_text(cause.images_per_second) + " images/s.", width);
  for (const std::string& path : cause.paths) add_text(lines, "  ", path, width);
}

TopLines why_lines(const TopModel& model, const TopView& view, std::size_t width) {
  const auto session = std::ranges::find(model.sessions, view.selected, &TopSession::id);
  if (session == model.sessions.end())
    return {{"Session " + std::to_string(view.selected) + " is gone: it was closed, or its program has ended."}};
  TopLines lines{{session_title(*session), Emphasis::kStrong}};
  add_text(lines, "", waiting_text(model, *session), width);
  for (const TopCause& cause : session->causes) add_cause(lines, cause, width);
  if (!session->causes.empty()) return lines;
  lines.push_back({});
  if (model.explains) {
    add_text(lines, "", "The daemon has found no cause yet: it looks at some seconds first.", width);
  } else {
    add_text(lines, "", "The daemon is older than this command and finds no causes.", width);
    if (!session->cause.empty())
      add_text(lines, "", "Most of that time its state was: " + session->cause + ". See `millrace stats`.", width);
  }
  return lines;
}

constexpr std::pair<const char*, const char*> kColumnsHelp[] = {
    {"IMAGES/S", "images that are made for the session"},
    {"WAITED", "share of the time that its program waited for batches; -: it does not say"},
    {"CAUSE", "why it waits most; of an older daemon: what the session does most"},
    {"SLOTS", "those that hold a batch, of all"},
    {"LANES", "lanes of the processor that work for it"},
    {"JOB", "Loader(job=), else $MILLRACE_JOB, else the session's name"},
};
constexpr std::pair<const char*, const char*> kKeysHelp[] = {
    {"Enter", "why the chosen session waits, and what to change"},
    {"Up, Down", "choose a session; also k and j, Page Up and Page Down"},
    {"Left, Right", "sort by the column before or behind"},
    {"r", "sort the other way round"},
    {"p", "pause: the figures stay as they are"},
    {"Esc", "back to the sessions"},
    {"q", "quit; also Ctrl-C"},
};

template <std::size_t kRows>
void add_help(TopLines& lines, const std::pair<const char*, const char*> (&rows)[kRows], std::size_t width) {
  constexpr std::size_t kTerm = 13;
  for (const auto& [term, text] : rows) {
    std::string before = fitted(term, kTerm);
    for (const std::string& line : broken(text, width > 2 * kTerm ? width - kTerm : kTerm)) {
      lines.push_back({before + line});
      before = std::string(kTerm, ' ');
    }
  }
}

TopLines help_lines(std::size_t width) {
  TopLines lines{{"Columns", Emphasis::kStrong}};
  add_help(lines, kColumnsHelp, width);
  lines.push_back({});
  lines.push_back({"Keys", Emphasis::kStrong});
  add_help(lines, kKeysHelp, width);
  return lines;
}

// Of the pages that are scrolled: all of their lines.
TopLines text_of_page(const TopModel& model, const TopView& view, std::size_t width) {
  if (view.page == TopPage::kHelp) return help_lines(width);
  return view.page == TopPage::kWhy && model.gone.empty() ? why_lines(model, view, width) : TopLines{};
}

// What a screen has room for, beneath what was scrolled away. A last line says that there is more.
TopLines scrolled(TopLines lines, std::size_t scrolled, std::size_t room) {
  const std::size_t most = lines.size() > room ? lines.size() - room : 0;
  const std::size_t first = std::min(scrolled, most);
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(first));
  if (lines.size() <= room) return lines;
  lines.resize(room);
  if (room > 1) lines.back() = {"... more with Down"};
  return lines;
}

std::size_t lines_above(const TopModel& model, const TopView& view, TopSize size) {
  constexpr std::size_t kLeastPage = 4;  // lines, for which those above make room
  const std::size_t most = size.height > kLeastPage + 1 ? size.height - kLeastPage - 1 : 1;
  return std::min(top_of(model, view, size.width).size(), most);
}

// Of a page, between what is above it and the keys.
std::size_t room_of(const TopModel& model, const TopView& view, TopSize size) {
  const std::size_t others = lines_above(model, view, size) + 1;
  return size.height > others ? size.height - others : 0;
}

// Lines that are longer are cut, and what stands in them is never wider than the screen.
TopLines cut(TopLines lines, std::size_t width) {
  for (TopLine& line : lines) {
    if (columns_of(line.text) > width) line.text = fitted(line.text, width);
  }
  return lines;
}

TopLines page_of(const TopModel& model, const TopView& view, std::size_t width, std::size_t room) {
  if (view.page != TopPage::kSessions) return scrolled(text_of_page(model, view, width), view.scrolled, room);
  return model.gone.empty() ? session_lines(model, view, width, room) : TopLines{};
}

std::string keys_text(const TopView& view, std::size_t width) {
  const std::string keys = view.page == TopPage::kSessions ? kSessionKeys : kPageKeys;
  return keys.size() <= width ? keys : kShortKeys;
}

}  // namespace

TopLines top_screen(const TopModel& model, const TopView& view, TopSize size) {
  TopLines lines = top_of(model, view, size.width);
  lines.resize(lines_above(model, view, size));
  for (TopLine& line : page_of(model, view, size.width, room_of(model, view, size))) lines.push_back(std::move(line));
  lines.resize(size.height > 0 ? size.height - 1 : 0);
  lines.push_back({keys_text(view, size.width), Emphasis::kHeading});
  return cut(std::move(lines), size.width);
}

std::size_t most_scrolled(const TopModel& model, const TopView& view, TopSize size) {
  const std::size_t lines = text_of_page(model, view, size.width).size(), room = room_of(model, view, size);
  return lines > room ? lines - room : 0;
}

TopLines top_print(const TopModel& model, std::size_t width) {
  TopLines lines = top_of(model, {}, width);
  const std::size_t room = model.sessions.size() + 2;
  for (TopLine& line : session_lines(model, {}, width, room)) lines.push_back(std::move(line));
  for (TopLine& line : lines) line.text.erase(line.text.find_last_not_of(' ') + 1);
  return cut(std::move(lines), width);
}

}  // namespace millrace::cli
