// What millraced was called with, and the settings that it comes to with the file's. Values; the functions are for
// main()'s thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fetch/open/unmapped_ids.h"
#include "daemon/settings/settings.h"
#include "proto/base/result.h"

namespace millrace {

struct CommandLine {
  std::string config;
  bool check_config = false;
  bool memory_drop_in = false;
  std::string socket;
  std::vector<std::string> roots;
  std::optional<std::uint32_t> lanes;
  std::string cuda, fpga;  // empty: as the settings say
  std::string fake;
  std::optional<int> exit_status;  // all was said already: --help, --version, wrong usage
};

constexpr int kUsage = 2;  // exit status of wrong usage and of wrong settings

CommandLine read_command_line(int argc, char** argv);

// Defaults, then the file, then the command line; checked. Errors: load_settings(), check_settings().
Result<Settings> settings_of(const CommandLine& line, const UnmappedIds& unmapped);

// The settings' roots may come later. Those of the command line must be there, so that a mistake in typing is seen at
// once.
Result<void> look_for_roots(const CommandLine& line);

// With --check-config: checks (the settings and the budgets go to stdout, what should be looked at to stderr), and the
// exit status. With --memory-drop-in: that goes to stdout. nullopt: with neither.
std::optional<int> only_check(const CommandLine& line, const Settings& settings);

// The settings file as other processes can find it; empty: none.
std::string settings_file(const CommandLine& line);

}  // namespace millrace
