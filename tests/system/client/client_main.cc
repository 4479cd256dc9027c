// The test client: `millrace_system_client ACT SOCKET ARGUMENT...`. Everything that it says is one line on stdout;
// errors go to stderr.
#include <cstdio>
#include <exception>
#include <iostream>
#include <vector>

#include "tests/system/client/acts.h"

namespace millrace {
namespace {

struct Act {
  std::string_view name;
  int (*run)(const std::string& socket, Arguments arguments);
  std::string_view usage;
};

constexpr Act kActs[] = {
    {"epoch", act_epoch,
     "FOLDER [batch=4] [seed=7] [shuffle=1] [stop_after=0] [position=FILE] [step=0]: prints every batch"},
    {"hold", act_hold,
     "FOLDER N: takes N batches and keeps them; prints `holding N`; each line of stdin: looks at them again"},
    {"open", act_open, "SLOTS MIB: opens a session of slots of so many MiB, says `open` and waits"},
    {"handoff", act_handoff, "connected|welcomed|opened: goes so far into the hand-off, prints `at STAGE` and waits"},
    {"die_in_submit", act_die_in_submit, "FILE: kills itself while it sends a batch"},
    {"die_with_work", act_die_with_work,
     "FOLDER: submits many batches, says `submitted`, and kills itself on the next line of stdin"},
    {"work", act_work,
     "PATH... [batch=16] [side=64] [lanczos=0] [packed=0] [inline=0] [slot_mib=0] [slots=2] [sessions=1] "
     "[priority=normal]: batches of these files, or of their bytes, without end; says `done N` after each"},
    {"list_again", act_list_again, "FOLDER: opens it as a dataset without end; says `done N` after each"},
    {"cancel_calls", act_cancel_calls,
     "[method=METHOD]: begins gRPC calls and cancels them, until it is turned away; says `cut off`, `begun N`, `turned "
     "away`"},
    {"ask_statistics", act_ask_statistics,
     ": asks for statistics without end, eight times at once; says `done` after each"},
    {"send_cancels", act_send_cancels,
     ": cancels batches that are not there, without end; says `done` after each 1,000"},
    {"send_frames", act_send_frames,
     "kind=KIND [connections=4]: sends HTTP/2 frames without end, until it is turned away; says `cut off`, `turned "
     "away`"},
    {"send_halves", act_send_halves,
     "[connections=20]: begins calls with a message of 60 KiB each and sends all but its end; says `sent`, `cut off`"},
    {"read", act_read,
     "PATH...: one batch of these files, of parts of them as PATH[OFFSET+LENGTH]; prints what became of each"},
    {"list", act_list, "FOLDER: opens it as a dataset; prints the number of samples, or the error"},
    {"gpu_read", act_gpu_read,
     "MEMORY PATH...: one batch of these files with its tensors there, by libmillrace; prints a hash of its bytes"},
    {"gpu_memory", act_gpu_memory,
     "MEMORY SLOTS MIB: opens a session with tensors there, closes it on the first line of stdin, and waits; says "
     "`open`, "
     "`closed`, or the error"},
    {"reopen", act_reopen, ": tries to get write access to its segment; prints what each attempt gave"},
};

int usage() {
  std::fputs("usage: millrace_system_client ACT SOCKET ARGUMENT...\n", stderr);
  for (const Act& act : kActs)
    std::fprintf(stderr, "  %s SOCKET %s\n", std::string(act.name).c_str(), std::string(act.usage).c_str());
  return 2;
}

}  // namespace

std::string option(Arguments arguments, std::string_view key, std::string otherwise) {
  for (const std::string& argument : arguments) {
    if (argument.size() > key.size() && argument.starts_with(key) && argument[key.size()] == '=')
      return argument.substr(key.size() + 1);
  }
  return otherwise;
}

void say(const std::string& line) {
  std::cout << line << std::endl;
}

bool next_line(std::string& line) {
  return static_cast<bool>(std::getline(std::cin, line));
}

}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2) return usage();
  for (const Act& act : kActs) {
    if (act.name != words[0]) continue;
    try {
      return act.run(words[1], Arguments(words).subspan(2));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "error %s\n", error.what());
      return 1;
    }
  }
  return usage();
}
