// What the kernel says of the daemon's process, under the names that Prometheus' own libraries use. Functions,
// thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "client/cli/web/exposition.h"

namespace millrace::cli {

struct ProcessFigures {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double start_seconds = 0;  // since 1970
  double threads = 0;
};

// Of the process `pid`, which says that it is a daemon and has run for `uptime`. nullopt: /proc does not show it, or
// the number is another process's here: in a container it may be.
std::optional<ProcessFigures> process_figures(pid_t pid, std::chrono::duration<double> uptime);

// nullopt: the families alone.
void expose(const std::optional<ProcessFigures>& figures, Exposition& page);

}  // namespace millrace::cli
