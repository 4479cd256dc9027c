#include "daemon/fetch/open/open_at.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace millrace {

namespace {

UniqueFd open_resolving(int folder, const std::string& path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = resolve;
  constexpr int kAttempts = 16;  // EAGAIN: something was renamed while ".." of a link was resolved, see openat2(2)
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd fd(static_cast<int>(syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
    if (fd || (errno != EAGAIN && errno != EINTR)) return fd;
  }
  return UniqueFd();
}

}  // namespace

UniqueFd open_beneath(int folder, const std::string& relative_path, int flags) {
  return open_resolving(folder, relative_path, flags, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

UniqueFd open_without_links(const std::string& folder) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  UniqueFd found = open_resolving(AT_FDCWD, folder, kFlags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (found || (errno != ENOSYS && errno != EPERM)) return found;
  // Without openat2(): folder by folder. A link is ENOTDIR then.
  found = UniqueFd(open("/", kFlags));
  for (std::size_t slash = 0; found && slash + 1 < folder.size();) {
    const std::size_t end = std::min(folder.find('/', slash + 1), folder.size());
    found = UniqueFd(openat(found.get(), folder.substr(slash + 1, end - slash - 1).c_str(), kFlags | O_NOFOLLOW));
    slash = end;
  }
  return found;
}

UniqueFd reopen(int fd, int flags) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
  return UniqueFd(open(name.data(), flags));
}

}  // namespace millrace
