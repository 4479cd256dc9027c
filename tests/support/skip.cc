#include "tests/support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "proto/base/unique_fd.h"

namespace millrace {

// Format of the file: lines of PROGRAM <tab> WHAT; tests/support/skips.py writes and reads it too. One write a line, so
// that programs that run at the same time do not mix theirs.
void skip_loudly(const std::string& what) {
  std::fprintf(stderr, "SKIPPED: %s\n", what.c_str());
  const char* path = std::getenv("MILLRACE_SKIPPED");
  if (path == nullptr || *path == '\0') return;
  const std::string line = std::string(program_invocation_short_name) + "\t" + what + "\n";
  const UniqueFd file(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::fprintf(stderr, "%s: cannot be written: this skip is missing in the list\n", path);
}

}  // namespace millrace
