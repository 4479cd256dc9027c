#include "client/cli/top/terminal.h"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

// Last: it defines macros of common names.
#define NCURSES_NOMACROS
#include <ncurses.h>

namespace millrace::cli {
namespace {

constexpr short kWarningColours = 1;
constexpr int kEscape = 27;

bool is_utf8() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

// For terminals that know no other letters.
std::string in_ascii(const std::string& text) {
  std::string ascii;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80)
      ascii += text[at];
    else if (text.compare(at, 3, "\u2193") == 0)
      ascii += 'v';
    else if (text.compare(at, 3, "\u2191") == 0)
      ascii += '^';
    else if ((byte & 0xc0) != 0x80 && byte != 0xe2)
      ascii += '?';
  }
  return ascii;
}

attr_t attributes_of(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kPlain:
      return A_NORMAL;
    case Emphasis::kStrong:
      return A_BOLD;
    case Emphasis::kHeading:
    case Emphasis::kSelected:
      return A_REVERSE;
    case Emphasis::kWarning:
      return A_BOLD | (::has_colors() ? COLOR_PAIR(kWarningColours) : A_NORMAL);
  }
  return A_NORMAL;
}

std::optional<TopKey> top_key(int pressed) {
  switch (pressed) {
    case KEY_UP:
    case 'k':
      return TopKey::kUp;
    case KEY_DOWN:
    case 'j':
      return TopKey::kDown;
    case KEY_PPAGE:
      return TopKey::kPageUp;
    case KEY_NPAGE:
      return TopKey::kPageDown;
    case KEY_LEFT:
    case '<':
      return TopKey::kLeft;
    case KEY_RIGHT:
    case '>':
      return TopKey::kRight;
    case KEY_ENTER:
    case '\n':
    case '\r':
      return TopKey::kEnter;
    case kEscape:
    case KEY_BACKSPACE:
      return TopKey::kBack;
    case 'r':
      return TopKey::kReverse;
    case 'p':
    case ' ':
      return TopKey::kPause;
    case 'h':
    case '?':
      return TopKey::kHelp;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::unique_ptr<TopTerminal>> TopTerminal::open() {
  constexpr const char* kOnce = "; `millrace top --once` prints a screen anywhere";
  if (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0)
    return Error{Code::kPrecondition, std::string("top needs a terminal") + kOnce};
  const char* const kind = std::getenv("TERM");
  std::setlocale(LC_CTYPE, "");
  bool draws = kind != nullptr && ::newterm(kind, stdout, stdin) != nullptr;
  if (draws) {
    const char* const moves = ::tigetstr("cup");  // the cursor; -1: the terminal knows no such thing
    draws = moves != nullptr && moves != reinterpret_cast<const char*>(-1);
    if (!draws) ::endwin();
  }
  if (!draws)
    return Error{Code::kPrecondition,
                 std::string("nobody knows how to draw on a terminal of this kind ($TERM)") + kOnce};
  return std::unique_ptr<TopTerminal>(new TopTerminal);
}

TopTerminal::TopTerminal() {
  ::set_escdelay(25);  // milliseconds, in which an arrow's letters come one after the other
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(::stdscr, TRUE);
  ::curs_set(0);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(kWarningColours, COLOR_RED, -1);
  }
}

TopTerminal::~TopTerminal() {
  ::endwin();
}

TopSize TopTerminal::size() const {
  return {static_cast<std::size_t>(::getmaxx(::stdscr)), static_cast<std::size_t>(::getmaxy(::stdscr))};
}

void TopTerminal::draw(const std::vector<TopLine>& lines) {
  ::werase(::stdscr);
  int row = 0;
  const auto width = static_cast<std::size_t>(::getmaxx(::stdscr));
  for (const TopLine& line : lines) {
    const attr_t attributes = attributes_of(line.emphasis);
    ::wattrset(::stdscr, static_cast<int>(attributes));
    const bool is_bar = line.emphasis == Emphasis::kHeading || line.emphasis == Emphasis::kSelected;
    const std::string text = is_utf8() ? line.text : in_ascii(line.text);
    if (is_bar) ::mvwhline(::stdscr, row, 0, ' ' | attributes, static_cast<int>(width));
    ::mvwaddnstr(::stdscr, row++, 0, text.data(), static_cast<int>(text.size()));
  }
  ::wattrset(::stdscr, A_NORMAL);
  ::wrefresh(::stdscr);
}

std::optional<TopTerminal::Event> TopTerminal::wait(std::chrono::milliseconds time) {
  ::wtimeout(::stdscr, static_cast<int>(time.count()));
  const int pressed = ::wgetch(::stdscr);
  if (pressed == ERR) return std::nullopt;
  if (pressed == KEY_RESIZE) return Event{.is_resized = true};
  if (pressed == 'q' || pressed == 'Q') return Event{.quits = true};
  return Event{.key = top_key(pressed)};
}

}  // namespace millrace::cli
