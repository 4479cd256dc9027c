#include "daemon/fetch/read/spare_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

namespace millrace {

namespace {

// false: there are not that many.
bool open_until(std::size_t count, std::vector<UniqueFd>& held) {
  while (held.size() < count) {
    UniqueFd spare(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!spare) return false;
    held.push_back(std::move(spare));
  }
  return true;
}

}  // namespace

std::size_t SpareDescriptors::share(std::size_t threads) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kEnough;
  return std::min<std::size_t>(kEnough, limit.rlim_cur / 8 / std::max<std::size_t>(threads, 1));
}

void SpareDescriptors::fill() {
  open_until(count_, held_);
}

bool SpareDescriptors::give_up() {
  std::vector<UniqueFd> others;
  if (held_.empty() || open_until(kEnough, others)) return false;
  held_.clear();
  return true;
}

}  // namespace millrace
