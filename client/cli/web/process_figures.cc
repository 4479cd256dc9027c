#include "client/cli/web/process_figures.h"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "client/cli/web/families.h"

namespace millrace::cli {
namespace {

// How far the start that the daemon tells may be from the kernel's: it counts from when it listens.
constexpr double kStartsWithin = 60;
// What the daemon calls its first thread, and so its process.
constexpr std::string_view kMainThread = "mr-control";

// Since the host was started. nullopt: /proc is not there.
std::optional<double> host_uptime() {
  std::ifstream file("/proc/uptime");
  double seconds = 0;
  if (!(file >> seconds)) return std::nullopt;
  return seconds;
}

// When the host was started, in whole seconds since 1970, as the kernel says. The time now, less the uptime, would be
// another one at each scrape, and programs take a change for a new process.
double host_start() {
  std::ifstream file("/proc/stat");
  std::string word;
  for (double seconds = 0; file >> word;)
    if (word == "btime" && file >> seconds) return seconds;
  return 0;
}

}  // namespace

std::optional<ProcessFigures> process_figures(pid_t pid, std::chrono::duration<double> uptime) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  const std::optional<double> host = host_uptime();
  if (pid <= 0 || !host || !std::getline(stat, line)) return std::nullopt;
  const std::size_t open = line.find('('), end = line.rfind(')');
  if (open == std::string::npos || end == std::string::npos || end < open) return std::nullopt;
  if (line.substr(open + 1, end - open - 1) != kMainThread) return std::nullopt;
  std::istringstream fields(line.substr(end + 1));
  std::string skipped;
  double user = 0, system = 0, threads = 0, start = 0, size = 0, pages = 0;
  for (int field = 3; field <= 13; ++field) fields >> skipped;  // state to cmajflt
  fields >> user >> system >> skipped >> skipped >> skipped >> skipped >> threads >> skipped >> start >> size >> pages;
  if (!fields) return std::nullopt;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age = *host - start / ticks;
  if (std::abs(age - uptime.count()) > kStartsWithin) return std::nullopt;
  return ProcessFigures{.cpu_seconds = (user + system) / ticks,
                        .resident_bytes = pages * static_cast<double>(::sysconf(_SC_PAGESIZE)),
                        .virtual_bytes = size,
                        .start_seconds = host_start() + start / ticks,
                        .threads = threads};
}

void expose(const std::optional<ProcessFigures>& figures, Exposition& page) {
  const auto one = [&](WebFamily id, double ProcessFigures::*figure) {
    page.family(family_of(id));
    if (figures) page.sample((*figures).*figure);
  };
  one(WebFamily::process_cpu, &ProcessFigures::cpu_seconds);
  one(WebFamily::process_resident, &ProcessFigures::resident_bytes);
  one(WebFamily::process_virtual, &ProcessFigures::virtual_bytes);
  one(WebFamily::process_start, &ProcessFigures::start_seconds);
  one(WebFamily::process_threads, &ProcessFigures::threads);
}

}  // namespace millrace::cli
