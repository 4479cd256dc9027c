#include "daemon/fetch/open/identity.h"

#include <linux/magic.h>
#include <linux/major.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <algorithm>
#include <iterator>

namespace millrace {
namespace {

// Of file systems that lie on no block device of their own. Those that linux/magic.h leaves out:
constexpr std::uint64_t kZfs = 0x2FC12FC1, kLustre = 0x0BD00BD0, kCeph = 0x00C36400, kBcachefs = 0xCA451A4E;

constexpr std::uint64_t kChangingCtime[] = {BTRFS_SUPER_MAGIC, NFS_SUPER_MAGIC, kZfs, kLustre, kCeph, kBcachefs};

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::int64_t nanoseconds_since_1970() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

FileIdentity identity_of(const struct stat& status) {
  return FileIdentity{.device = status.st_dev,
                      .inode = status.st_ino,
                      .size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)),
                      .modified = nanoseconds(status.st_mtim),
                      .changed = nanoseconds(status.st_ctim)};
}

std::optional<FileIdentity> identity_of(int fd, std::size_t size, std::int64_t begun) {
  constexpr std::int64_t kTicks =
      2'000'000'000;  // file systems whose clocks are coarser are no place for training data
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) != size) return std::nullopt;
  if (nanoseconds(status.st_ctim) > begun - kTicks) return std::nullopt;
  return identity_of(status);
}

bool vouches_for_times(const struct statfs& system, std::uint64_t device) {
  if (major(device) == LOOP_MAJOR || (system.f_flags & ST_RDONLY) != 0) return false;
  if (major(device) != 0) return true;  // a block device: ext4, XFS, ...
  const auto type = static_cast<std::uint64_t>(system.f_type);
  return std::find(std::begin(kChangingCtime), std::end(kChangingCtime), type) != std::end(kChangingCtime);
}

bool is_stable(int fd, const FileIdentity& identity, std::int64_t opened, std::chrono::seconds stable_after) {
  if (identity.changed > opened - std::chrono::nanoseconds(stable_after).count()) return false;
  struct statfs system {};
  return fstatfs(fd, &system) == 0 && vouches_for_times(system, identity.device);
}

}  // namespace millrace
