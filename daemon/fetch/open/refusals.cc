#include "daemon/fetch/open/refusals.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/fetch/host_shortage.h"
#include "proto/base/printable.h"

namespace millrace {

Error not_readable() {
  return Error{Code::kDenied,
               "not readable: the path must lie beneath one of the daemon's roots and be readable by you"};
}

Error refused_to_daemon(const Caller& caller) {
  if (caller.uid == geteuid()) return not_readable();  // then the caller is refused the same
  // What root asks for is read by the daemon's user, and nobody's rights should be loosened for that.
  const std::string root = ", or ask as the user whose file it is rather than as root (runuser -u USER -- ...)";
  return Error{Code::kDenied, "the daemon itself may not read it: give its user (uid " + std::to_string(geteuid()) +
                                  ") access" + (caller.uid == 0 ? root : "")};
}

Error root_not_there(const std::string& root) {
  return Error{Code::kNotFound,
               "the root " + printable(root) + " is not there (yet): once it is, asking again is enough"};
}

Error no_such_file() {
  return Error{Code::kNotFound, "no such file or folder"};
}

Error not_a_regular_file() {
  return Error{Code::kInvalid, "not a regular file"};
}

Error a_folder_not_a_file() {
  return Error{Code::kInvalid, "a folder, not a file"};
}

Error a_file_not_a_folder() {
  return Error{Code::kInvalid, "a file, not a folder"};
}

Error held_by_a_lease() {
  return Error{Code::kPrecondition, "another process holds a lease on the file; try again later"};
}

Error open_error(int error_number, Error refused) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return no_such_file();
    case EACCES:
    case EPERM:
      return refused;
    case EWOULDBLOCK:
      return held_by_a_lease();
    case ENXIO:
    case ENODEV:
      return not_a_regular_file();
    default:
      return io_error("opening the file", error_number);
  }
}

}  // namespace millrace
