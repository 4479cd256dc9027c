// What a caller may do with an open file or folder, by owner, groups, mode and POSIX ACL, as acl(5) describes the
// check. System calls that change nothing.
//
// In a user namespace that does not map every id, files and callers of quite different users bear one and the same id.
// It is nobody's here: such an owner or group matches no caller, such a caller gets nothing, and where a caller may or
// may not be in such a group, only what both would allow is allowed. Immutable.
#pragma once

#include <sys/stat.h>

#include "daemon/fetch/open/unmapped_ids.h"
#include "daemon/model/caller.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

namespace millrace {

enum class Right : mode_t { kRead = 4, kSearch = 1 };

class CallerRights {
 public:
  explicit CallerRights(UnmappedIds unmapped) : unmapped_(unmapped) {}

  // Whether the caller can be told from others.
  bool is_known(const Caller& caller) const { return caller.uid != unmapped_.user; }
  // kDenied: the caller cannot be told from others, so nothing is his.
  Result<void> check_known(const Caller& caller) const;

  // Whether the kernel would let the caller's every wish pass, or has checked it already: root, and the daemon's own
  // user.
  bool is_trusted(const Caller& caller) const;

  // Whether `caller` has `right` to what `fd` (O_PATH or open) refers to. `status`: its fstat. false when an ACL cannot
  // be read. Root has no privilege here: ask is_trusted() first.
  bool may(const Caller& caller, Right right, int fd, const struct stat& status) const;

  // Whether the daemon reads this file, or lists this folder, for the caller: he is trusted, or has the right himself.
  bool may_read(const Caller& caller, int fd, const struct stat& status) const;
  bool may_list(const Caller& caller, int fd, const struct stat& status) const;

  // The same as may() for given mode bits alone, and for the content of the attribute system.posix_acl_access; false
  // when that is malformed.
  bool mode_allows(const Caller& caller, Right right, const struct stat& status) const;
  bool acl_allows(const Caller& caller, Right right, const struct stat& status, ByteView acl_untrusted) const;

 private:
  const UnmappedIds unmapped_;
};

}  // namespace millrace
