// A child process of a test: its output is read as it comes, so it never blocks on a full pipe; it is killed and reaped
// with its owner.
//
//   Process client = Process::spawn({.argv = {bin_folder() + "/millrace", "ping", "--socket", socket}});
//   REQUIRE(client.wait_for("round trip"));
//   client.kill(SIGKILL);
//   REQUIRE(client.wait() == 128 + SIGKILL);
//
// Thread-safe, except for its end. The kernel kills the child should the spawning thread end first.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0]: a path, or a name looked up in $PATH
  // Beside this process's own, or instead of the same names there.
  std::vector<std::pair<std::string, std::string>> env;
  std::optional<uid_t> user;  // run as this user and group of the same number, without others (needs root)
  std::string folder;         // working folder; empty: this process's
};

class Process {
 public:
  static constexpr std::chrono::milliseconds kPatience{30'000};

  // Throws std::runtime_error when the program cannot be started: a broken test.
  static Process spawn(const ProcessSpec& spec);
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();  // SIGKILL if it still runs

  pid_t pid() const;

  // The first line, of stdout or stderr, that holds `text`, as soon as it is whole. nullopt: the process closed its
  // output, or `limit` passed.
  std::optional<std::string> wait_for(const std::string& text, std::chrono::milliseconds limit = kPatience) const;
  // One line to its stdin; false when nobody reads there any more.
  bool say(const std::string& line) const;
  // Nothing when it has ended already.
  void kill(int signal) const;
  // Its exit status, or 128 + the signal that ended it; nullopt: it still runs after `limit`. All its output has been
  // read then, unless a child of its own keeps the pipe open.
  std::optional<int> wait(std::chrono::milliseconds limit = kPatience) const;
  bool running() const;

  std::string output() const;  // what it wrote to stdout so far
  std::string errors() const;  // and to stderr

 private:
  struct State;
  explicit Process(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// The folder with our programs: $MILLRACE_BIN_DIR, which ctest sets; else `bin` beside the folder of this program.
std::string bin_folder();
// The folder with helper programs of tests: $MILLRACE_TESTS_DIR, else `tests` beside the folder of this program.
std::string tests_folder();

}  // namespace millrace
