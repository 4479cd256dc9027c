// What the subcommands have in common. Each file beside this one adds its subcommand to the app and runs it.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace millrace::cli {

enum ExitCode : int {
  kFine = 0,         // bad samples that were skipped included
  kFailed = 1,       // nothing came out included
  kUsage = 2,        // the command line makes no sense
  kUnreachable = 3,  // no daemon, or it stops, or it went away
  kInterrupted = 130,
};

// Adds the subcommand; `chosen` becomes its run function when the line names it.
using Chosen = std::function<int()>;
void add_run(CLI::App& app, Chosen& chosen);
void add_preview(CLI::App& app, Chosen& chosen);
void add_replay(CLI::App& app, Chosen& chosen);
void add_stats(CLI::App& app, Chosen& chosen);
void add_devices(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);
void add_index(CLI::App& app, Chosen& chosen);
void add_cache(CLI::App& app, Chosen& chosen);
void add_cache_orders(CLI::App& cache, Chosen& chosen);  // of `cache`: drop, verify
void add_convert(CLI::App& app, Chosen& chosen);
void add_ping(CLI::App& app, Chosen& chosen);
void add_admin(CLI::App& app, Chosen& chosen);

}  // namespace millrace::cli
