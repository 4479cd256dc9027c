#include "daemon/cache/disk/store_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <memory>

#include "daemon/cache/disk/fit_for_store.h"

namespace millrace {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

Result<void> make_private(const std::string& path, int folder) {
  struct stat status {};
  if (::fstat(folder, &status) != 0) return errno_error("looking at " + path, errno);
  if (status.st_uid != ::geteuid()) return Error{Code::kDenied, path + " belongs to somebody else"};
  if ((status.st_mode & 077) != 0 && ::fchmod(folder, 0700) != 0) return errno_error("closing " + path, errno);
  struct statfs system {};
  if (::fstatfs(folder, &system) != 0) return errno_error("looking at " + path, errno);
  if (is_remote_file_system(static_cast<std::uint64_t>(system.f_type)))
    return Error{Code::kUnsupported, path + " is on a network file system or on FUSE"};
  return {};
}

}  // namespace

Result<StoreFolder> StoreFolder::open(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS)
    return errno_error("making the folder " + path, errno);
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && (errno == ENOTDIR || errno == ELOOP))
    return Error{Code::kDenied, path + " is not a folder, or is a link: remove it"};
  if (!folder) return errno_error("opening the folder " + path, errno);
  MILLRACE_TRY_VOID(make_private(path, folder.get()));
  return StoreFolder(path, std::move(folder));
}

Result<UniqueFd> StoreFolder::open_file(const std::string& name, int flags) const {
  UniqueFd file(::openat(folder_.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST) return Error{Code::kPrecondition, path_ + "/" + name + " is there already"};
  if (!file && errno == ELOOP) return Error{Code::kDenied, path_ + "/" + name + " is a link"};
  if (!file) return errno_error("opening " + path_ + "/" + name, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error("looking at " + path_ + "/" + name, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink > 1)
    return Error{Code::kDenied, path_ + "/" + name + " is not a file of this user's own"};
  return file;
}

std::optional<StoreFolder::Status> StoreFolder::status(const std::string& name) const {
  struct stat status {};
  if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return Status{static_cast<std::uint64_t>(status.st_size), static_cast<std::uint64_t>(status.st_blocks) * 512};
}

Result<std::vector<std::string>> StoreFolder::names() const {
  UniqueFd again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!again) return errno_error("opening " + path_, errno);
  const std::unique_ptr<DIR, CloseFolder> list(::fdopendir(again.get()));
  if (list == nullptr) return errno_error("listing " + path_, errno);
  again.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(list.get())) names.emplace_back(entry->d_name);
  if (errno != 0) return errno_error("listing " + path_, errno);
  return names;
}

Result<void> StoreFolder::check_there() const {
  struct stat status {};
  if (::fstat(folder_.get(), &status) != 0) return errno_error("looking at " + path_, errno);
  if (status.st_nlink > 0) return {};
  return Error{Code::kUnavailable, path_ + " was removed: it is made again when millraced starts again"};
}

bool StoreFolder::remove(const std::string& name) const {
  return ::unlinkat(folder_.get(), name.c_str(), 0) == 0;
}

}  // namespace millrace
