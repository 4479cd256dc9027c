// millraced: settings -> parts -> run.
#include <optional>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/process/command_line.h"
#include "daemon/process/daemon.h"
#include "daemon/process/process.h"

namespace millrace {
namespace {

int fail(const Error& error, int status) {
  print_failure("millraced", error.message);
  return status;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  using namespace millrace;
  const CommandLine line = read_command_line(argc, argv);
  if (line.exit_status) return *line.exit_status;
  const UnmappedIds unmapped = unmapped_ids();
  Result<Settings> settings = settings_of(line, unmapped);
  if (!settings) return fail(settings.error(), kUsage);
  if (const std::optional<int> status = only_check(line, *settings)) return *status;
  if (const Result<void> there = look_for_roots(line); !there) return fail(there.error(), 1);
  prepare_process(*settings);
  Daemon daemon(*std::move(settings), line);
  if (const Result<void> made = daemon.assemble(unmapped); !made) return fail(made.error(), 1);
  daemon.run();
  return 0;
}
