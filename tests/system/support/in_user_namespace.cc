// millrace_in_user_namespace MAP PROGRAM ARGUMENT...: runs the program in a user namespace of its own that maps only
// the ids of MAP, users and groups alike: lines as in /proc/PID/uid_map, see user_namespaces(7). Needs root. Exit
// status 77: namespaces are not to be had here.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "proto/base/unique_fd.h"

namespace {

constexpr int kNotHere = 77;

bool write_map(pid_t process, const char* name, const std::string& map) {
  const std::string path = "/proc/" + std::to_string(process) + "/" + name;
  const millrace::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), map.data(), map.size()) == static_cast<ssize_t>(map.size());
}

// A child that stays outside and writes the maps of `process` once that has its namespace; its exit status says how it
// went.
pid_t start_mapper(pid_t process, const std::string& map, const int entered[2]) {
  const pid_t mapper = ::fork();
  if (mapper != 0) return mapper;
  ::close(entered[1]);
  char byte = 0;
  if (::read(entered[0], &byte, 1) != 1) ::_exit(1);
  ::_exit(write_map(process, "uid_map", map) && write_map(process, "gid_map", map) ? 0 : 1);
}

int not_here(const char* what) {
  std::fprintf(stderr, "millrace_in_user_namespace: %s: %s\n", what, std::strerror(errno));
  return kNotHere;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int entered[2];
  if (::pipe2(entered, O_CLOEXEC) != 0) return not_here("a pipe");
  const pid_t mapper = start_mapper(::getpid(), argv[1], entered);
  if (::unshare(CLONE_NEWUSER) != 0) return not_here("unshare");
  int status = -1;
  const bool mapped = ::write(entered[1], "e", 1) == 1 && ::waitpid(mapper, &status, 0) == mapper &&
                      WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!mapped) return not_here("mapping ids");
  ::execv(argv[2], argv + 2);
  return not_here(argv[2]);
}
