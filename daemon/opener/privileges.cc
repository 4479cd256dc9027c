#include "daemon/opener/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace millrace {
namespace {

constexpr std::uint32_t kBoth = (1U << CAP_SETUID) | (1U << CAP_SETGID);  // both are in the first word

constexpr const char* kHow =
    ": systemd's unit starts it so; by hand, as root: setpriv --reuid=USER --regid=USER --clear-groups "
    "--inh-caps=+setuid,+setgid --ambient-caps=+setuid,+setgid millrace-opener ...";

}  // namespace

Result<void> keep_two_capabilities() {
  if (::geteuid() == 0)
    return Error{Code::kPrecondition, std::string("it must not run as root, but as a user of its own") + kHow};
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> caps{};
  if (::syscall(SYS_capget, &header, caps.data()) != 0) return errno_error("asking for its capabilities", errno);
  if ((caps[0].effective & kBoth) != kBoth)
    return Error{Code::kPrecondition, std::string("it needs the capabilities CAP_SETUID and CAP_SETGID") + kHow};
  caps = {};
  caps[0].effective = caps[0].permitted = kBoth;
  if (::syscall(SYS_capset, &header, caps.data()) != 0) return errno_error("dropping capabilities", errno);
  static_cast<void>(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  static_cast<void>(::prctl(PR_SET_DUMPABLE, 0));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("giving up new privileges", errno);
  return {};
}

}  // namespace millrace
