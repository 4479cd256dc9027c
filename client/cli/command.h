// What the subcommands have in common. Each file beside this one adds its subcommand to the app and runs it.
#pragma once

#include <functional>

namespace millrace::cli {

class Command;

enum ExitCode : int {
  kFine = 0,         // bad samples that were skipped included
  kFailed = 1,       // nothing came out included
  kUsage = 2,        // the command line makes no sense
  kUnreachable = 3,  // no daemon, or it stops, or it went away
  kInterrupted = 130,
};

// Adds the subcommand; `chosen` becomes its run function when the line names it.
using Chosen = std::function<int()>;
void add_run(Command app, Chosen& chosen);
void add_preview(Command app, Chosen& chosen);
void add_replay(Command app, Chosen& chosen);
void add_stats(Command app, Chosen& chosen);
void add_top(Command app, Chosen& chosen);
void add_trace(Command app, Chosen& chosen);
void add_why(Command app, Chosen& chosen);
void add_devices(Command app, Chosen& chosen);
void add_doctor(Command app, Chosen& chosen);
void add_index(Command app, Chosen& chosen);
void add_cache(Command app, Chosen& chosen);
void add_cache_orders(Command cache, Chosen& chosen);  // of `cache`: drop, verify
void add_convert(Command app, Chosen& chosen);
void add_ping(Command app, Chosen& chosen);
void add_admin(Command app, Chosen& chosen);
void add_web(Command app, Chosen& chosen);

}  // namespace millrace::cli
