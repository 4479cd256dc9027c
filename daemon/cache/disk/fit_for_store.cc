#include "daemon/cache/disk/fit_for_store.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proto/base/result.h"

namespace millrace {

bool is_remote_file_system(std::uint64_t type) {
  constexpr std::array<std::uint64_t, 14> kRemote{
      0x6969,      // NFS
      0x517B,      // SMB
      0xFF534D42,  // CIFS
      0xFE534D42,  // SMB 2
      0x01021997,  // 9P
      0x65735546,  // FUSE
      0x00C36400,  // Ceph
      0x0BD00BD0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0x20030528,  // OrangeFS
      0x5346414F,  // AFS
      0x6B414653,  // the kernel's own AFS
      0x73757245,  // Coda
  };
  return std::find(kRemote.begin(), kRemote.end(), type & 0xFFFFFFFF) != kRemote.end();
}

namespace {

// Whether somebody but this user and root can rename, remove and add what is in the folder.
bool is_open_to_others(const struct stat& folder) {
  if (folder.st_uid != ::geteuid() && folder.st_uid != 0) return true;
  return (folder.st_mode & S_IWOTH) != 0 && (folder.st_mode & S_ISVTX) == 0;
}

}  // namespace

std::string unfit_for_store(const std::string& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return errno_error("writing to " + folder, errno).message;
  struct stat status {};
  struct statfs system {};
  if (::stat(folder.c_str(), &status) != 0 || ::statfs(folder.c_str(), &system) != 0)
    return errno_error("looking at " + folder, errno).message;
  if (is_open_to_others(status))
    return folder +
           " belongs to another user, or all may write to it; set daemon.state_dir to a folder of this user's own";
  if (is_remote_file_system(static_cast<std::uint64_t>(system.f_type)))
    return folder + " is on a network file system or on FUSE; set daemon.state_dir to a folder of a local disk";
  return "";
}

}  // namespace millrace
