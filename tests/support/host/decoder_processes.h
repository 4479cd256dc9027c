// Processes that this process, or another, has beside it. Pure functions of /proc.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/under_sanitizer.h"

namespace millrace {

// What ends a decoder as a crash does. Sanitizers make something else of a crash proper.
inline const int kCrash = under_sanitizer() ? SIGTERM : SIGSEGV;

// Those whose parent is `parent` and whose program has this name. Ended ones that nobody has reaped count, too.
std::vector<pid_t> child_processes(pid_t parent, const std::string& name);
std::vector<pid_t> decoder_processes(pid_t parent);
// Whether there is one such child, and it is another one than `before`.
bool is_replaced(pid_t parent, const std::string& name, pid_t before);

// Whether it is in its sandbox: it has a filter of system calls.
bool is_shut_in(pid_t process);

// A line of /proc/PID/status, what stands behind "Name:"; empty: there is none, or no such process.
std::string status_line(pid_t process, const std::string& name);

}  // namespace millrace
