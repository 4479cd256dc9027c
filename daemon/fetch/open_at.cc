#include "daemon/fetch/open_at.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace millrace {

UniqueFd open_beneath(int folder, const std::string& relative_path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  constexpr int kAttempts = 16;  // EAGAIN: something was renamed while ".." of a link was resolved, see openat2(2)
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd(static_cast<int>(syscall(SYS_openat2, folder, relative_path.c_str(), &how, sizeof how)));
    if (fd || (errno != EAGAIN && errno != EINTR)) return fd;
  }
  return UniqueFd();
}

UniqueFd reopen(int fd, int flags) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
  return UniqueFd(open(name.data(), flags));
}

}  // namespace millrace
