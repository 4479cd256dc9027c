// What a caller may do with an open file or folder, by owner, groups, mode and POSIX ACL, as acl(5) describes the
// check. Pure functions and system calls that change nothing, thread-safe.
#pragma once

#include <sys/stat.h>

#include "daemon/model/caller.h"
#include "proto/base/bytes.h"

namespace millrace {

enum class Right : mode_t { kRead = 4, kSearch = 1 };

// Whether the kernel would let the caller's every wish pass, or has checked it already: root, and the daemon's own
// user.
bool is_trusted(const Caller& caller);

// Whether `caller` has `right` to what `fd` (O_PATH or open) refers to. `status`: its fstat. false when an ACL cannot
// be read. Root has no privilege here: ask is_trusted() first.
bool may(const Caller& caller, Right right, int fd, const struct stat& status);

// The same for given mode bits alone, and for the content of the attribute system.posix_acl_access; false when that is
// malformed.
bool mode_allows(const Caller& caller, Right right, const struct stat& status);
bool acl_allows(const Caller& caller, Right right, const struct stat& status, ByteView acl_untrusted);

}  // namespace millrace
