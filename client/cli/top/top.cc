// millrace top: sessions, what each waits for, devices, cache and memory, looked at again and again.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "client/cli/command.h"
#include "client/cli/connection.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/top/looks.h"
#include "client/cli/top/screen.h"
#include "client/cli/top/terminal.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::milliseconds kForKeys{100};  // until it looks whether there are newer figures
constexpr double kEverySeconds = 2, kOnceSeconds = 1;

struct TopOptions {
  std::string socket;
  std::optional<double> every;  // seconds between looks
  bool once = false;
};

std::chrono::milliseconds pause_of(const TopOptions& options) {
  const double seconds = options.every.value_or(options.once ? kOnceSeconds : kEverySeconds);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Of the terminal, else of $COLUMNS, else 80.
std::size_t print_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width >= 20 && width <= 1000 ? static_cast<std::size_t>(width) : 80;
}

int top_once(const TopOptions& options) {
  TopLooker looker(options.socket);
  watch_for_interrupt();
  Result<TopLook> before = looker.look();
  if (!before) return report(before.error());
  if (!wait_unless_interrupted(pause_of(options))) return kInterrupted;
  const Result<TopLook> look = looker.look();
  if (!look) return report(look.error());
  for (const TopLine& line : top_print(top_model(*look, *std::move(before)), print_width()))
    std::printf("%s\n", line.text.c_str());
  return kFine;
}

int top(const TopOptions& options) {
  if (options.once) return top_once(options);
  watch_for_interrupt();
  const Result<std::unique_ptr<TopLooks>> looks = TopLooks::start(options.socket, pause_of(options));
  if (!looks) return report(looks.error());
  const Result<std::unique_ptr<TopTerminal>> terminal = TopTerminal::open();
  if (!terminal) return report(terminal.error());
  TopLooks::Newest shown;
  shown.model.gone = "The daemon is being asked.";
  TopView view;
  while (!interrupted()) {
    TopLooks::Newest newest = (*looks)->newest();
    if (newest.number != shown.number && !view.is_paused) shown = std::move(newest);
    const TopSize size = (*terminal)->size();
    (*terminal)->draw(top_screen(shown.model, view, size));
    const std::optional<TopTerminal::Event> event = (*terminal)->wait(kForKeys);
    if (!event) continue;
    if (event->quits) return kFine;
    if (event->key) view = after(*event->key, view, shown.model, size.height / 2);
    view.scrolled = std::min(view.scrolled, most_scrolled(shown.model, view, size));
  }
  return kFine;  // watching has no other end
}

}  // namespace

void add_top(Command app, Chosen& chosen) {
  auto options = std::make_shared<TopOptions>();  // shared with the callback
  const Command command = app.subcommand("top", "Which sessions are there, and what does each wait for?");
  command.option("--every", options->every, "look again every so many SECONDS (default: 2; with --once: 1)")
      .check(real_number(0.1, 3600.0))
      .type_name("SECONDS");
  command.flag("--once", options->once, "print one screen, of two looks, and end; it needs no terminal");
  command
      .option("--socket", options->socket,
              "the daemon's socket (default: $MILLRACE_SOCKET, else " + std::string(kDefaultSocket) + ")")
      .check(not_empty())
      .group("Daemon");
  command.footer(
      "WAITED is the share of the time that a session's program waited for\n"
      "batches, CAUSE why. Enter says in sentences what bounds the chosen session,\n"
      "and what to change. Left and Right sort by another column, r turns the order\n"
      "round, p pauses, h helps, q quits. While no daemon answers it says so, and\n"
      "goes on when one does.\n"
      "\n"
      "Examples:\n  millrace top\n  millrace top --every 0.5\n  millrace top --once\n  COLUMNS=200 millrace top --once "
      "| "
      "less -S");
  command.callback([options, &chosen] { chosen = [options] { return top(*options); }; });
}

}  // namespace millrace::cli
