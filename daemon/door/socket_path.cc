#include "daemon/door/socket_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

enum class Listener : bool { kNone, kSomebody };

Result<Listener> who_listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error{Code::kInvalid,
                 path + ": a socket's path has at most " + std::to_string(sizeof(address.sun_path) - 1) + " bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return errno_error("making a socket", errno);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return Listener::kSomebody;
  if (errno == ECONNREFUSED || errno == ENOENT) return Listener::kNone;
  if (errno == EAGAIN || errno == EPROTOTYPE || errno == EACCES) return Listener::kSomebody;
  return errno_error("connecting to " + path, errno);
}

}  // namespace

Result<void> claim_socket_path(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return errno_error("looking at " + path, errno);
  }
  if (!S_ISSOCK(status.st_mode))
    return Error{Code::kPrecondition,
                 path + " is there already and is not a socket: remove it, or set daemon.socket to another path"};
  MILLRACE_TRY(const Listener listener, who_listens(path));
  if (listener == Listener::kSomebody) {
    return Error{Code::kPrecondition,
                 "another daemon listens on " + path + ": stop it, or set daemon.socket to another path"};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("removing the stale socket " + path, errno);
  return {};
}

// Where a folder has an ACL, the bits of its group are the ACL's mask: then somebody else may be let in by it.
bool others_can_reach(const std::string& path) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::weakly_canonical(path, failed).parent_path();
  for (; !folder.empty(); folder = folder.parent_path()) {
    struct stat status {};
    const bool known = ::stat(folder.c_str(), &status) == 0;
    if (known && status.st_uid == ::geteuid() && (status.st_mode & (S_IXGRP | S_IXOTH)) == 0) return false;
    if (folder == folder.root_path()) break;
  }
  return true;
}

}  // namespace millrace
