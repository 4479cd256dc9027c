#include "tests/bench/service/cores.h"

#include <sched.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/bench/rig.h"

namespace millrace::bench {
namespace {

// Empty: there is no such file.
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

// The processors of the same core, as the kernel writes them.
std::string siblings(int processor) {
  const std::string text =
      first_line("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list");
  return text.empty() ? std::to_string(processor) : text;
}

cpu_set_t set_of(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(static_cast<unsigned>(processor), &set);
  return set;
}

}  // namespace

std::vector<int> separate_cores(std::size_t most) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) give_up("the kernel does not say which cores are usable");
  std::vector<int> found;
  std::set<std::string> seen;
  for (int processor = 0; processor < CPU_SETSIZE && found.size() < most; ++processor) {
    if (CPU_ISSET(static_cast<unsigned>(processor), &usable) && seen.insert(siblings(processor)).second)
      found.push_back(processor);
  }
  return found;
}

void confine(pid_t process, const std::vector<int>& processors) {
  const cpu_set_t set = set_of(processors);
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    const auto thread = static_cast<pid_t>(std::stol(task.path().filename().string()));
    const bool refused = sched_setaffinity(thread, sizeof set, &set) != 0 && errno != ESRCH;
    if (refused) give_up("a process cannot be confined to its cores");
  }
}

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
    give_up("the processor time of a process cannot be read");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double thread_seconds(pid_t process, std::string_view name) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  const std::filesystem::path first = tasks / std::to_string(process);
  const std::string first_name = first_line(first / "comm");
  double nanoseconds = 0;
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    const std::string found = first_line(task.path() / "comm");
    if (found.starts_with(name) && (found != first_name || task.path() == first))
      nanoseconds += std::strtod(first_line(task.path() / "schedstat").c_str(), nullptr);
  }
  if (nanoseconds == 0) give_up("the kernel does not say how long " + std::string(name) + " computed");
  return nanoseconds * 1e-9;
}

}  // namespace millrace::bench
