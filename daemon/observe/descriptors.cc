#include "daemon/observe/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>

namespace millrace {
namespace {

constexpr const char* kOpen = "/proc/self/fd";
constexpr std::chrono::seconds kBetweenCounts{1};

// 0: the kernel does not show them here.
std::int64_t open_descriptors() {
  struct stat folder {};
  if (::stat(kOpen, &folder) != 0) return 0;
  if (folder.st_size > 0) return folder.st_size;  // Linux 6.2 says how many there are
  DIR* const opened = ::opendir(kOpen);
  if (opened == nullptr) return 0;
  std::int64_t entries = 0;
  while (::readdir(opened) != nullptr) ++entries;
  ::closedir(opened);
  return std::max<std::int64_t>(entries - 3, 0);  // ".", ".." and the one that reads
}

}  // namespace

void DescriptorCount::look(Counters& counters) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto last = last_.load(std::memory_order_relaxed);
  const bool due = last == 0 || now - std::chrono::steady_clock::duration(last) >= kBetweenCounts;
  if (!due || !last_.compare_exchange_strong(last, now.count(), std::memory_order_relaxed)) return;
  counters.set(MetricId::descriptors, open_descriptors());
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return;
  constexpr rlim_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  counters.set(MetricId::descriptors_most, static_cast<std::int64_t>(std::min(most.rlim_cur, kNoLimit)));
}

}  // namespace millrace
