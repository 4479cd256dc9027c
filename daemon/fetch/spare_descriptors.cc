#include "daemon/fetch/spare_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>

namespace millrace {

std::size_t SpareDescriptors::share(std::size_t threads) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kEnough;
  return std::min<std::size_t>(kEnough, limit.rlim_cur / 8 / std::max<std::size_t>(threads, 1));
}

void SpareDescriptors::fill() {
  while (held_.size() < count_) {
    UniqueFd spare(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!spare) return;
    held_.push_back(std::move(spare));
  }
}

bool SpareDescriptors::give_up() {
  const bool had_some = !held_.empty();
  held_.clear();
  return had_some;
}

}  // namespace millrace
