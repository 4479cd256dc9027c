// millrace_bench: the figures of the service, measured through the real daemon and the client library. config/setup.sh
// bench runs it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/bench/engine.h"
#include "tests/bench/figures.h"
#include "tests/bench/transports.h"

namespace millrace::bench {
namespace {

struct Group {
  const char* names;  // of its figures, for --filter
  void (*run)(const BenchOptions&, const Report&);
};
constexpr Group kGroups[] = {
    {"handover.p50 handover.p99 handover.x10.p50", run_handover},
    {"service.efficiency.1 service.efficiency.2 service.cpu.1 service.cpu.2", run_efficiency},
    {"daemon.scaling", run_scaling},
    {"daemon.rss daemon.rss.growth", run_memory},
    {"jpeg.entropy jpeg.entropy.indexed jpeg.entropy.restarts jpeg.decode.exact train.exact.first train.exact.indexed "
     "train.exact.recording train.fast.first train.fast.indexed",
     run_engine},
};

std::string default_data() {
  if (const char* folder = std::getenv("MILLRACE_TEST_DATA")) return std::string(folder) + "/photos";
  return "";
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  serve_bytes_if_asked(argc, argv);
  BenchOptions options;
  options.data = default_data();
  CLI::App app{"Figures of the service, through the real daemon and the client library: medians of interleaved rounds"};
  app.add_flag("--json", options.json, "One JSON object a line: first the machine, then a figure each");
  app.add_option("--filter", options.filter, "Only groups with a figure whose name contains this");
  app.add_option("--data", options.data, "Folder of photographs (default: $MILLRACE_TEST_DATA/photos)")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--quick", options.quick, "A smoke run: few rounds, figures that nobody should quote");
  CLI11_PARSE(app, argc, argv);
  if (options.data.empty()) {
    std::fprintf(stderr, "millrace_bench: no photographs: give their folder with --data, or set MILLRACE_TEST_DATA\n");
    return 2;
  }
  ::setenv("XDG_STATE_HOME", "/dev/null", 1);  // no daemon finds what an earlier one kept
  options.data = std::filesystem::canonical(options.data).string();
  const Report report(options.json);
  report.header(options);
  for (const Group& group : kGroups) {
    if (std::string(group.names).find(options.filter) != std::string::npos) group.run(options, report);
  }
  return 0;
}
