// Who may order the daemon about: those of access.admins, root, and the daemon's own user. The names of users and groups
// are looked up once; whether a caller is in a group says the kernel, by the groups that his process has. Value,
// immutable.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/model/caller.h"
#include "proto/base/result.h"

namespace millrace {

// Of the daemon's process, which others must not be taken for.
struct OwnIds {
  std::optional<uid_t> owner;           // its user; nullopt: others show as the same one
  std::optional<uid_t> unmapped_user;   // that stands for many, in a user namespace (fetch/open/unmapped_ids.h)
  std::optional<gid_t> unmapped_group;  // likewise
};

class Admins {
 public:
  Admins() = default;  // nobody but root

  // "alice", "1000", "@ops", "@44". kInvalid: names the ones that this host does not know. May ask a directory service,
  // and wait for it: not for the control thread.
  static Result<Admins> find(const std::vector<std::string>& names, const OwnIds& own = {});

  bool include(const Caller& caller) const;

  // Why `caller` is refused, and who could do it: kDenied. `what`: "drain it".
  Error refusal(const Caller& caller, const std::string& what) const;

 private:
  OwnIds own_;
  std::vector<uid_t> users_;
  std::vector<gid_t> groups_;
};

}  // namespace millrace
