// What a file is known by, and how far that can be relied upon. Thread-safe: plain functions.
#pragma once

#include <sys/stat.h>
#include <sys/vfs.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/files/file_identity.h"

namespace millrace {

std::int64_t nanoseconds_since_1970();

FileIdentity identity_of(const struct stat& status);

// The identity of the file behind `fd`, of which `size` bytes were read after `begun`, nanoseconds since 1970. nullopt:
// it has another size, or changed so shortly before or since then that it need not tell these bytes from others.
std::optional<FileIdentity> identity_of(int fd, std::size_t size, std::int64_t begun);

// How long a file must have been unchanged before its identity alone stands for its contents. A page of a shared mapping
// that is dirty already takes stores without a new ctime, until the kernel has written it back: after half a minute, and
// a little more on a busy disk (vm.dirty_expire_centisecs).
inline constexpr std::chrono::seconds kStableAfter{120};

// Whether it does: its ctime is at least `stable_after` before `opened`, nanoseconds since 1970, when the file behind `fd` was
// opened or before; and vouches_for_times() says so of the file system. A system call.
bool is_stable(int fd, const FileIdentity& identity, std::int64_t opened, std::chrono::seconds stable_after);

// Whether files on this file system, as statfs(2) gives it, and on this device change their ctime with each store, through
// a mapping too, and the user who fills it cannot choose times. Not: those in memory (tmpfs), those that may lie on one
// (overlay), and unknown ones; nor what is mounted read-only or from a loop device: the author of such an image chose
// its times, and the next image that is mounted may have them as well, and the same device number.
bool vouches_for_times(const struct statfs& system, std::uint64_t device);

}  // namespace millrace
