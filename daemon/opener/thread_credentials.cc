#include "daemon/opener/thread_credentials.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace millrace {
namespace {

constexpr long kNobodyAtAll = -1;  // an id that is never taken: the call tells which one there is

bool take_groups(std::vector<gid_t> wanted) {
  if (::syscall(SYS_setgroups, wanted.size(), wanted.data()) != 0) return false;
  std::vector<gid_t> taken(wanted.size() + 1);
  const long count = ::syscall(SYS_getgroups, taken.size(), taken.data());
  if (count != static_cast<long>(wanted.size())) return false;
  taken.resize(wanted.size());
  std::sort(wanted.begin(), wanted.end());
  std::sort(taken.begin(), taken.end());  // the kernel sorts them by its own ids
  return taken == wanted;
}

// setfsuid() and setfsgid() say nothing of failure.
bool take_id(long call, unsigned id) {
  static_cast<void>(::syscall(call, id));
  return static_cast<unsigned>(::syscall(call, kNobodyAtAll)) == id;
}

}  // namespace

Result<void> ThreadCredentials::put_on(const std::shared_ptr<const Caller>& who) {
  if (worn_ == who && who != nullptr) return {};
  worn_ = nullptr;
  if (take_groups(who->groups) && take_id(SYS_setfsgid, who->gid) && take_id(SYS_setfsuid, who->uid)) {
    worn_ = who;
    return {};
  }
  return Error{Code::kInternal, "the opener could not take the place of user " + std::to_string(who->uid) +
                                    ": it needs CAP_SETUID and CAP_SETGID, and that its user namespace maps the user"};
}

}  // namespace millrace
