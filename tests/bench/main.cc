// millrace_bench: the figures of the service, measured through the real daemon and the client library. config/setup.sh
// bench runs it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "tests/bench/engine/engine.h"
#include "tests/bench/engine/engine_packed.h"
#include "tests/bench/engine/isolation.h"
#include "tests/bench/engine/l3.h"
#include "tests/bench/engine/packed.h"
#include "tests/bench/engine/png.h"
#include "tests/bench/engine/stages.h"
#include "tests/bench/figures.h"
#include "tests/bench/host_load.h"
#include "tests/bench/service/opener.h"
#include "tests/bench/service/transports.h"

namespace millrace::bench {
namespace {

enum class Needs : std::uint8_t { kNothing, kPhotographs };

struct Group {
  const char* names;  // of its figures, for --filter
  void (*run)(const BenchOptions&, const Report&);
  Needs needs = Needs::kPhotographs;
};
constexpr Group kGroups[] = {
    {"handover.p50 handover.p99 latency.submit_to_view handover.x10.p50", run_handover, Needs::kNothing},
    {"latency.overhead.tiny latency.overhead.inline latency.overhead.path latency.overhead.large", run_latency},
    {"service.efficiency.1 service.efficiency.2 service.cpu.1 service.cpu.2", run_efficiency},
    {"service.efficiency.packed.1 service.efficiency.packed.2 service.efficiency.disk.1 service.efficiency.disk.2",
     run_efficiency_packed},
    {"daemon.scaling", run_scaling},
    {"batch.tail", run_tail, Needs::kNothing},
    {"control.cpu control.cpu.many fetch.cpu", run_control},
    {"cost.accounts.64 cost.accounts.8 cost.accounts.1 cost.sum", run_costs},
    {"service.ceiling", run_ceiling, Needs::kNothing},
    {"observe.cost", run_observe},
    {"observe.cost.tiny", run_observe_tiny, Needs::kNothing},
    {"daemon.rss daemon.rss.growth", run_memory},
    {"idle.cpu reclaim.p50 reclaim.p99", run_host_load},
    {"fair.error fair.victim.priority fair.victim.urgent fair.victim.sessions fair.victim.giants fair.victim.sparse "
     "fair.victim.padded "
     "fair.victim.missing "
     "fair.victim.links fair.victim.tiny fair.victim.refused fair.victim.cancels "
     "fair.victim.statistics "
     "fair.victim.cancelled latency.busy",
     run_neighbours},
    {"why.promise.disk why.promise.loop why.promise.share", run_why},
    {"open.large_ms open.small_beside_ms", run_opening, Needs::kNothing},
    {"scrape.p50_ms scrape.p99_ms scrape.web_mib", run_scraping, Needs::kNothing},
    {"open.caller", run_opener, Needs::kNothing},
    {"cache.epoch.1 cache.epoch.2 cache.epoch.3 cache.epoch.4 cache.disk cache.disk.read cache.share.4.first "
     "cache.share.4.later",
     run_cache},
    {"parts.ratio.first parts.ratio.packed parts.ratio.cold parts.cpu.first parts.cpu.packed parts.cpu.cold",
     run_parts},
    {"isolation.cost isolation.cpu isolation.cost.png isolation.cpu.png isolation.cost.webp isolation.cpu.webp "
     "isolation.cost.progressive isolation.cpu.progressive",
     run_isolation},
    {"jpeg.entropy jpeg.entropy.indexed jpeg.entropy.restarts jpeg.decode.exact train.exact.first train.exact.indexed "
     "train.exact.recording train.fast.first train.fast.indexed train.exact.first.avx2 train.fast.first.avx2",
     run_engine},
    {"infer.exact.first infer.exact.packed train.exact.packed train.exact.packed.avx2 train.exact.packed.avx512bw "
     "train.fast.packed",
     run_packed_engine},
    {"l3.decode l3.decode.avx2 l3.decode.scalar l3.crop l3.encode.fast l3.encode.best", run_l3},
    {"png.decode png.decode.avx2", run_png},
    {"packed.size packed.decode packed.decode.avx2 packed.encode packed.encode.memory packed.encode.avx2", run_packed},
    {"engine.entropy engine.unpack engine.chroma engine.colour engine.across engine.down engine.store engine.whole",
     run_stages},
};

// Empty: there are no photographs.
std::string default_data() {
  const char* data = std::getenv("MILLRACE_TEST_DATA");
  const std::string folder = std::string(data == nullptr ? "" : data) + "/photos";
  return data != nullptr && std::filesystem::is_directory(folder) ? folder : "";
}

std::vector<Group> chosen(const std::string& filter) {
  std::vector<Group> groups;
  for (const Group& group : kGroups) {
    if (std::string(group.names).find(filter) != std::string::npos) groups.push_back(group);
  }
  return groups;
}

// nullptr: they can run.
const char* why_not(const std::vector<Group>& groups, const BenchOptions& options) {
  if (groups.empty()) return "no figure's name contains what --filter says; tests/bench/README.md lists them";
  const bool needed =
      std::any_of(groups.begin(), groups.end(), [](const Group& group) { return group.needs == Needs::kPhotographs; });
  if (!needed || !options.data.empty()) return nullptr;
  return "no photographs: give their folder with --data, or set MILLRACE_TEST_DATA to the folder that has photos/";
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  serve_bytes_if_asked(argc, argv);
  hold_a_session_if_asked(argc, argv);
  BenchOptions options;
  options.data = default_data();
  CLI::App app{"Figures of the service, through the real daemon and the client library: medians of interleaved rounds"};
  app.add_flag("--json", options.json, "One JSON object a line: first the machine, then a figure each");
  app.add_option("--filter", options.filter, "Only groups with a figure whose name contains this");
  app.add_option("--data", options.data, "Folder of photographs (default: $MILLRACE_TEST_DATA/photos)")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--quick", options.quick, "A smoke run: few rounds, figures that nobody should quote");
  CLI11_PARSE(app, argc, argv);
  const std::vector<Group> groups = chosen(options.filter);
  if (const char* why = why_not(groups, options)) return std::fprintf(stderr, "millrace_bench: %s\n", why), 2;
  ::setenv("XDG_STATE_HOME", "/dev/null", 1);  // no daemon finds what an earlier one kept
  if (!options.data.empty()) options.data = std::filesystem::canonical(options.data).string();
  const Report report(options.json);
  report.header(options);
  for (const Group& group : groups) group.run(options, report);
  return 0;
}
