#include "daemon/process/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/backend/cuda/cuda_settings.h"
#include "daemon/backend/fake/fake_settings.h"
#include "daemon/backend/fpga/fpga_settings.h"
#include "daemon/fetch/open/root_folder.h"
#include "daemon/process/budget_text.h"
#include "daemon/process/options.h"
#include "daemon/process/parts.h"
#include "daemon/settings/example_settings.h"
#include "daemon/settings/state_dir.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

// Where this user's own folders cannot be told from others', none is taken for it.
void distrust_own_folders(Settings& settings, const UnmappedIds& unmapped) {
  if (unmapped.user == ::geteuid() && settings.state_dir == automatic_state_dir()) settings.state_dir.clear();
}

void add_options(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", std::string("millraced ") + MILLRACE_VERSION);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return "millraced: " + printable(error.what()) + "\nmillraced: `millraced --help` shows what there is\n";
  });
  app.add_option("--config", line.config,
                 "Settings file (TOML); the one that is installed, " + example_settings(MILLRACE_SETTINGS) +
                     ", documents every key")
      ->check([](const std::string& path) { return std::string(path.empty() ? "not a file's name" : ""); });
  app.add_flag("--check-config", line.check_config,
               "Check the settings, print what they amount to and how much clients may have, and end");
  app.add_flag("--memory-drop-in", line.memory_drop_in,
               "Print a systemd drop-in that limits the service's memory to what the settings add up to, and end");
  app.add_option("--socket", line.socket,
                 "Unix socket to listen on, instead of daemon.socket; the hand-off socket lies beside it");
  app.add_option("--root", line.roots,
                 "Folder that is there and clients may read from, beside files.roots; may be repeated");
  app.add_option("--lanes", line.lanes, "CPU lanes, instead of lanes.cpu; 0: one a processor")
      ->check(CLI::Range(0, 4096).description(""));
  app.add_option("--cuda", line.cuda,
                 "NVIDIA's GPUs, instead of backends.cuda: no; auto, where there are some; yes, or it does not start")
      ->check(CLI::IsMember({"no", "auto", "yes"}).description("no|auto|yes"));
  app.add_option("--fpga", line.fpga,
                 "FPGA cards, instead of backends.fpga: no; auto, where there are some; yes, or it does not start")
      ->check(CLI::IsMember({"no", "auto", "yes"}).description("no|auto|yes"));
  app.add_option("--fake", line.fake,
                 "Adds the fake backend with these options, for tests: instant=1, delay_us=100, ...");
  app.footer(
      "Examples:\n"
      "  millraced --config /etc/millrace/millrace.toml\n"
      "  millraced --config /etc/millrace/millrace.toml --check-config\n"
      "  millraced --socket /tmp/millrace.sock --root /data --lanes 4\n\n"
      "Where what is kept for the next start lies (seek indexes, packed forms, tensors): daemon.state_dir, unset "
      "/var/lib/millrace for the service and $XDG_STATE_HOME/millrace or ~/.local/state/millrace for other users; "
      "state_dir = \"\" or XDG_STATE_HOME=/dev/null keeps it in memory only.\n"
      "SIGHUP: the settings file is read again, as by `millrace admin reload`; what is marked \"Live.\" in it counts "
      "at "
      "once.\n"
      "SIGTERM or SIGINT: no new work, what is under way is finished (daemon.drain_seconds at the most), exit 0. A "
      "second one ends at once.\n"
      "Exit status: 0 stopped as asked, 1 could not start, 2 wrong usage or settings.");
}

void print_settings(const Settings& settings) {
  std::printf("%s\n%s", to_toml(settings, every_key(), TomlStyle::kMarked).c_str(),
              budget_table(budgets_of(settings)).c_str());
  if (const std::optional<std::string> much = too_much_memory(settings))
    std::fprintf(stderr, "millraced: %s\n", much->c_str());
  for (const std::string& remark : settings.remarks) std::fprintf(stderr, "millraced: %s\n", remark.c_str());
  for (const std::string& root : settings.roots) {
    const Result<void> there = RootFolder::look_for(root);
    if (!there)
      std::fprintf(stderr, "millraced: %s: what lies beneath it is not served until it is there\n",
                   there.error().message.c_str());
  }
}

}  // namespace

CommandLine read_command_line(int argc, char** argv) {
  CommandLine line;
  CLI::App app{"millraced: the host's image preprocessing daemon"};
  add_options(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    line.exit_status = app.exit(error) == 0 ? 0 : kUsage;
  }
  return line;
}

Result<Settings> settings_of(const CommandLine& line, const UnmappedIds& unmapped) {
  const KeyTable keys = every_key();
  Settings settings = default_settings();
  if (!line.config.empty()) {
    MILLRACE_TRY(settings, load_settings(line.config, keys));
  }
  if (!line.socket.empty()) settings.socket = line.socket;
  for (const std::string& root : line.roots) settings.roots.push_back(root);
  if (line.lanes) settings.groups.of<CpuSettings>().lanes = *line.lanes;
  if (!line.cuda.empty()) settings.groups.of<CudaSettings>().wanted = *wanted_of(line.cuda);
  if (!line.fpga.empty()) settings.groups.of<FpgaSettings>().wanted = *wanted_of(line.fpga);
  if (!line.fake.empty()) settings.groups.of<FakeSettings>().options = line.fake;
  distrust_own_folders(settings, unmapped);
  MILLRACE_TRY_VOID(check_settings(settings, keys));
  return settings;
}

Result<void> look_for_roots(const CommandLine& line) {
  for (const std::string& root : line.roots) MILLRACE_TRY_VOID(RootFolder::look_for(root));
  return {};
}

std::optional<int> only_check(const CommandLine& line, const Settings& settings) {
  if (line.memory_drop_in) {
    std::printf("%s", memory_drop_in(settings).c_str());
    if (const std::optional<std::string> much = too_much_memory(settings))
      std::fprintf(stderr, "millraced: a limit that bounds nothing: %s\n", much->c_str());
    return 0;
  }
  if (!line.check_config) return std::nullopt;
  print_settings(settings);
  return 0;
}

std::string settings_file(const CommandLine& line) {
  return line.config.empty() ? "" : std::filesystem::absolute(line.config).string();
}

}  // namespace millrace
