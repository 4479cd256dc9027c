#include "daemon/observe/explain/host_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

constexpr const char* kTasks = "/proc/self/task";
constexpr std::string_view kLaneThread = "mr-lane-";

// The beginning of a file; empty: it cannot be read.
std::string beginning_of(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : 0;
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

double of_processors(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// "nr_throttled 12" of cpu.stat.
std::uint64_t value_in(const std::string& text, const std::string& name) {
  const std::size_t at = ("\n" + text).find("\n" + name + " ");
  std::uint64_t value = 0;
  if (at != std::string::npos) std::sscanf(text.c_str() + at + name.size(), " %" SCNu64, &value);
  return value;
}

// Where the settings of control groups may be seen: version 2, and the processor's own hierarchy of version 1.
std::vector<std::string> files_of_groups() {
  std::vector<std::string> files;
  const std::string all = beginning_of("/proc/self/cgroup");
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    const std::string line = all.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string which = line.substr(first + 1, second - first - 1);
    const bool has_cpu = ("," + which + ",").find(",cpu,") != std::string::npos;
    if (!which.empty() && !has_cpu) continue;
    const std::string mount = which.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + which;
    for (std::string group = line.substr(second + 1); group.size() > 1; group.resize(group.rfind('/')))
      files.push_back(mount + group + "/cpu.stat");
  }
  return files;
}

}  // namespace

HostReader::HostReader() : groups_(files_of_groups()) {}

void HostReader::find_lanes() {
  lanes_.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir(kTasks), &::closedir);
  while (const dirent* const task = tasks ? ::readdir(tasks.get()) : nullptr) {
    const std::string folder = std::string(kTasks) + '/' + task->d_name;
    if (task->d_name[0] == '.' || !beginning_of(folder + "/comm").starts_with(kLaneThread)) continue;
    lanes_.push_back(folder + "/schedstat");
    if (lanes_.size() == kMostLanes) break;
  }
}

HostLook HostReader::look() {
  HostLook look;
  std::array<double, 8> ticks{};  // user, nice, system, idle, iowait, irq, softirq, steal
  std::sscanf(beginning_of("/proc/stat").c_str(), "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1],
              &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
  const auto second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  look.idle = (ticks[3] + ticks[4]) / second;
  look.busy = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) / second;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) look.own = of_processors(usage);

  const auto now = std::chrono::steady_clock::now();
  if (lanes_.empty() || now - searched_ > kBetweenSearches) {
    find_lanes();
    searched_ = now;
  }
  for (const std::string& lane : lanes_) {
    std::uint64_t ran = 0, lacked = 0;
    std::sscanf(beginning_of(lane).c_str(), "%" SCNu64 " %" SCNu64, &ran, &lacked);
    look.lanes_ran += static_cast<double>(ran) / 1e9;
    look.lanes_lacked += static_cast<double>(lacked) / 1e9;
  }
  for (const std::string& group : groups_) {
    const std::string text = beginning_of(group);
    const std::uint64_t periods = value_in(text, "nr_periods");
    if (periods == 0) continue;
    look.periods += periods;
    look.periods_cut += value_in(text, "nr_throttled");
    look.cut += static_cast<double>(value_in(text, "throttled_usec")) / 1e6 +
                static_cast<double>(value_in(text, "throttled_time")) / 1e9;
  }
  return look;
}

}  // namespace millrace
