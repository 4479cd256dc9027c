// A terminal on which lines are drawn and keys are read, by ncurses. Its state comes back when this goes. One in a
// process. Thread-bound(its owner).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "client/cli/top/screen.h"

namespace millrace::cli {

class TopTerminal {
 public:
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;
  ~TopTerminal();

  // An error: standard output is no terminal, or of a kind that nobody can draw on.
  static Result<std::unique_ptr<TopTerminal>> open();

  TopSize size() const;
  void draw(const std::vector<TopLine>& lines);

  struct Event {
    std::optional<TopKey> key{};
    bool quits = false;
    bool is_resized = false;
  };
  // What happens within that time; nothing: it has passed, or a signal came.
  std::optional<Event> wait(std::chrono::milliseconds time);

 private:
  TopTerminal();
};

}  // namespace millrace::cli
