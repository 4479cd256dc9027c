#include "daemon/settings/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace millrace {
namespace {

bool is_own_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

bool is_absolute(const std::string& path) {
  return path.starts_with('/');
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string automatic_state_dir(const StateDirHints& hints) {
  if (is_own_folder(hints.service) && ::access(hints.service.c_str(), W_OK | X_OK) == 0) return hints.service;
  if (is_absolute(hints.xdg_state_home)) return hints.xdg_state_home + "/millrace";
  if (is_absolute(hints.home) && is_own_folder(hints.home)) return hints.home + "/.local/state/millrace";
  return "";
}

std::string automatic_state_dir() {
  return automatic_state_dir({.xdg_state_home = variable("XDG_STATE_HOME"), .home = variable("HOME")});
}

Result<void> make_state_dir(const std::string& folder) {
  for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const int why = errno;
      if (::access(part.c_str(), F_OK) != 0) return errno_error("making the state directory " + folder, why);
    }
    if (end == folder.npos) break;
  }
  if (is_own_folder(folder)) return {};
  return Error{Code::kDenied, "the state directory " + folder + " is not a folder of this user's own"};
}

}  // namespace millrace
