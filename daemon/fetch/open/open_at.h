// The ways of opening that the C library lacks. Thread-safe.
#pragma once

#include <string>

#include "proto/base/unique_fd.h"

namespace millrace {

// openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS; without a descriptor, errno says why: EXDEV for a path
// that leads out or through an absolute link, ENOSYS on kernels before 5.6 and EPERM in sandboxes that forbid it.
UniqueFd open_beneath(int folder, const std::string& relative_path, int flags);

// A folder (O_PATH) by its absolute name, where no component of it is a symbolic link; ELOOP if one is.
UniqueFd open_without_links(const std::string& folder);

// Opens once more, with other flags, exactly what `fd` (also O_PATH) refers to. Needs /proc.
UniqueFd reopen(int fd, int flags);

}  // namespace millrace
