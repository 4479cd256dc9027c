// How much memory this host, or this container, has.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

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

// Shared memory is charged to the control group, whose limits hold on every level up to the root. Version 2, then
// version 1.
Bytes control_group() {
  const std::string root = "/sys/fs/cgroup";
  Bytes least = std::min(limit_in(root + "/memory.max"), limit_in(root + "/memory/memory.limit_in_bytes"));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); group.size() > 1; group.resize(std::max<std::size_t>(1, group.rfind('/'))))
      least = std::min(least, limit_in(root + group + "/memory.max"));
  }
  return least;
}

}  // namespace

Bytes automatic_segment_budget() {
  const Bytes least = std::min({shared_memory(), main_memory(), control_group()});
  return std::max(kLeast, Bytes{least.count / 2});
}

Bytes automatic_decoding_budget() {
  const Bytes least = std::min({main_memory(), control_group(), Bytes{kNoLimit.count / 1024}});
  return std::max(256_MiB, Bytes{least.count / 4});
}

Bytes automatic_cache_memory() {
  const Bytes least = std::min({main_memory(), control_group(), 64_GiB * 8});
  return Bytes{least.count / 8};
}

Bytes automatic_cache_disk(const std::string& state_dir) {
  struct statvfs status {};
  if (state_dir.empty() || ::statvfs(state_dir.c_str(), &status) != 0) return Bytes{0};
  return std::min(256_GiB, Bytes{status.f_bavail} * (status.f_frsize / 10));
}

}  // namespace millrace
