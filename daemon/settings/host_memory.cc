// How much memory this host, or this container, has.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "daemon/settings/settings.h"

namespace millrace {
namespace {

constexpr Bytes kNoLimit{std::numeric_limits<std::uint64_t>::max()};
constexpr Bytes kLeast = 1_MiB;

Bytes shared_memory() {
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) != 0 || status.f_blocks == 0)
    return kNoLimit;  // no blocks: mounted without a limit
  return Bytes{status.f_blocks} * status.f_frsize;
}

Bytes main_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return kNoLimit;
  return Bytes{static_cast<std::uint64_t>(pages)} * static_cast<std::uint64_t>(page);
}

// The number in `file`; none ("max", or no such file) is no limit.
Bytes limit_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t limit = 0;
  if (stream >> limit) return {limit};
  return kNoLimit;
}

// The least limit on the way from `group` up to the root of its hierarchy. In a container the path is the host's and may
// not be there; the root is then the container's own group.
Bytes least_limit(const std::string& hierarchy, std::string group, std::string_view file) {
  Bytes least = kNoLimit;
  while (true) {
    least = std::min(least, limit_in(hierarchy + (group == "/" ? "" : group) + "/" + std::string(file)));
    if (group.size() <= 1) return least;
    group.resize(std::max<std::size_t>(1, group.rfind('/')));
  }
}

bool names_memory(const std::string& controllers) {
  std::istringstream stream(controllers);
  for (std::string one; std::getline(stream, one, ',');) {
    if (one == "memory") return true;
  }
  return false;
}

// Shared memory is charged to the control group, whose limits hold on every level up to the root. A line of the file is
// "0::/group" of version 2 and "9:memory:/group" of version 1.
Bytes control_group() {
  const std::string root = "/sys/fs/cgroup";
  Bytes least = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string group = line.substr(second + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) least = std::min(least, least_limit(root, group, "memory.max"));
    if (names_memory(controllers))
      least = std::min(least, least_limit(root + "/memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

AutomaticBudgets budgets_here() {
  return automatic_budgets(memory_of_host(), shared_memory(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

Bytes memory_of_host() {
  return std::min(main_memory(), control_group());
}

Readers readers_of(const Settings& settings) {
  return {.threads = settings.fetch_threads + 1, .file = settings.limits.sample.encoded};
}

Bytes own_memory(std::uint32_t lanes, Bytes encoded, const Readers& readers) {
  return kDaemonKeeps + kLaneTakes * lanes + encoded * kTimesEncoded + readers.file * readers.threads;
}

AutomaticBudgets automatic_budgets(Bytes memory, Bytes shared, std::uint32_t lanes) {
  const Settings usual{};
  const Bytes all = std::min(memory, Bytes{kNoLimit.count / 1024});
  const Bytes own = own_memory(lanes, usual.encoded_in_flight, readers_of(usual));
  const Bytes clients = all - std::min(own, Bytes{all.count / 8 * 5});
  return {.segments = std::max(kLeast, Bytes{std::min(shared, clients).count / 2}),
          .decoding = std::max(256_MiB, Bytes{clients.count / 4}),
          .cache = std::min(64_GiB, Bytes{clients.count / 8}),
          .requests = std::max(16_MiB, Bytes{clients.count / 16})};
}

Bytes automatic_segment_budget() {
  return budgets_here().segments;
}

Bytes automatic_decoding_budget() {
  return budgets_here().decoding;
}

Bytes automatic_cache_memory() {
  return budgets_here().cache;
}

Bytes automatic_request_budget() {
  return budgets_here().requests;
}

Bytes automatic_cache_disk(const std::string& state_dir) {
  struct statvfs status {};
  if (state_dir.empty() || ::statvfs(state_dir.c_str(), &status) != 0) return Bytes{0};
  return std::min(256_GiB, Bytes{status.f_bavail} * (status.f_frsize / 10));
}

}  // namespace millrace
