#include "daemon/cache/check_in_child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace millrace {

bool check_in_child(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0) return true;
  std::string program = "millraced", option = kCheckIndexOption, database = path;
  char* const arguments[] = {program.data(), option.data(), database.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environment) != 0) return true;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace millrace
