#include "client/cli/convert/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "client/cli/convert/names.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && same_time(a.st_mtim, b.st_mtim) &&
         same_time(a.st_ctim, b.st_ctim);
}

// Reads up to `size` bytes; fewer only at the file's end.
Result<std::size_t> read_up_to(int file, std::uint8_t* bytes, std::size_t size, const std::string& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, bytes + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// Never over a file that is there. EEXIST: there is one.
int rename_new(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (::link(from, to) != 0) return errno;  // file systems that know no such rename, as NFS
  ::unlink(from);
  return 0;
}

}  // namespace

Result<SourceFile> SourceFile::open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return errno_error(path, errno);
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, path + " is no regular file"};
  return SourceFile(std::move(file), path, status);
}

Result<void> SourceFile::read(std::vector<std::uint8_t>& bytes) {
  bytes.resize(size());
  MILLRACE_TRY(const std::size_t got, read_up_to(file_.get(), bytes.data(), bytes.size(), path_));
  bytes.resize(got);
  return check_unchanged();
}

Result<void> SourceFile::read_piece(std::vector<std::uint8_t>& bytes) {
  bytes.resize(kPiece);
  MILLRACE_TRY(const std::size_t got, read_up_to(file_.get(), bytes.data(), bytes.size(), path_));
  bytes.resize(got);
  return {};
}

Result<void> SourceFile::check_unchanged() const {
  struct stat now {};
  if (::fstat(file_.get(), &now) != 0) return errno_error(path_, errno);
  if (same_file(status_, now)) return {};
  return Error{Code::kUnavailable, path_ + " changed while it was read: convert it again once it is at rest"};
}

bool is_still(const std::string& path, const struct stat& status) {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 && same_file(status, now);
}

Result<NewFile> NewFile::create(const std::string& folder, const std::string& name) {
  std::array<char, 24> number{};
  std::snprintf(number.data(), number.size(), "-%016zx", std::hash<std::string>()(name));
  const std::string temporary = folder + '/' + std::string(kOwnPrefix) + number.data();
  ::unlink(temporary.c_str());  // what a run that was killed left; two runs at a time are shut out by the lock
  UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const std::string path = folder + '/' + name;
  if (!file) return errno_error("writing " + path, errno);
  return NewFile(std::move(file), folder, temporary, path);
}

NewFile::NewFile(NewFile&& other) noexcept
    : file_(std::move(other.file_)),
      folder_(std::move(other.folder_)),
      temporary_(std::exchange(other.temporary_, {})),
      path_(std::move(other.path_)) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> NewFile::write(const std::vector<std::uint8_t>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error("writing " + path_, errno);
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Result<bool> NewFile::publish(const struct stat& like, Sync sync) {
  const std::array<timespec, 2> times{like.st_atim, like.st_mtim};
  if (::fchmod(file_.get(), like.st_mode & 0777) != 0 || ::futimens(file_.get(), times.data()) != 0)
    return errno_error("writing " + path_, errno);
  if (sync == Sync::kYes && ::fsync(file_.get()) != 0) return errno_error("writing " + path_, errno);
  if (const int failed = ::close(file_.release()); failed != 0) return errno_error("writing " + path_, errno);
  if (const int failed = rename_new(temporary_.c_str(), path_.c_str()); failed != 0) {
    if (failed == EEXIST) return false;
    return errno_error("writing " + path_, failed);
  }
  temporary_.clear();
  if (sync == Sync::kNo) return true;
  const UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return errno_error("writing " + path_, errno);
  return true;
}

}  // namespace millrace::cli
