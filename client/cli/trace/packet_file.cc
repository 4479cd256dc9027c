#include "client/cli/trace/packet_file.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace millrace::cli {

Result<std::unique_ptr<PacketFile>> PacketFile::create(const std::string& path) {
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may get no longer is an error as others
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return errno_error(path, errno);
  return std::unique_ptr<PacketFile>(new PacketFile(path, std::move(file)));
}

Result<void> PacketFile::append(std::string_view packets) {
  MutexLock lock(mutex_);
  if (has_failed_) return Error{Code::kInternal, path_ + " takes no more"};
  std::uint64_t end = bytes_;
  for (std::string_view left = packets; !left.empty();) {
    const ssize_t written = ::write(file_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int why = errno;
      has_failed_ = true;
      // Half a packet would make all of it unreadable.
      const bool is_whole = ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0;
      const Error error = errno_error("writing " + path_, why);
      return Error{error.code, error.message + (is_whole ? "; it ends there, and what it has can be read"
                                                         : "; it ends amid a packet")};
    }
    left.remove_prefix(static_cast<std::size_t>(written));
    end += static_cast<std::uint64_t>(written);
  }
  bytes_ = end;
  return {};
}

std::uint64_t PacketFile::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace millrace::cli
