// Preloaded into a program, a kernel before Linux 6.16: it does not know SO_PASSRIGHTS. Thread-safe.
#include <dlfcn.h>
#include <sys/socket.h>

#include <cerrno>

extern "C" int setsockopt(int socket, int level, int name, const void* value, socklen_t length) noexcept {
  constexpr int kPassRights = 83;
  if (level == SOL_SOCKET && name == kPassRights) {
    errno = ENOPROTOOPT;
    return -1;
  }
  using Real = int (*)(int, int, int, const void*, socklen_t);
  static const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "setsockopt"));
  return real(socket, level, name, value, length);
}
