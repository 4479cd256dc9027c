#include "tests/support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "proto/base/unique_fd.h"

namespace millrace {

// Format of the file: lines of TEST <tab> WHAT; tests/support/skips.py writes and reads it too. TEST is the name of the
// program. Where several tests share a program, ctest says the test's own name in MILLRACE_TEST_NAME. One write a line,
// so that programs that run at the same time do not mix theirs.
void skip_loudly(const std::string& what) {
  std::fprintf(stderr, "SKIPPED: %s\n", what.c_str());
  const char* path = std::getenv("MILLRACE_SKIPPED");
  if (path == nullptr || *path == '\0') return;
  const char* test = std::getenv("MILLRACE_TEST_NAME");
  const std::string where = test != nullptr && *test != '\0' ? test : program_invocation_short_name;
  const std::string line = where + "\t" + what + "\n";
  const UniqueFd file(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::fprintf(stderr, "%s: cannot be written: this skip is missing in the list\n", path);
}

bool skips_without_gpu_kernels() {
  if (MILLRACE_GPU_KERNELS) return false;
  skip_loudly("simulated GPUs (this build has no GPU kernels: config/setup.sh deps --cuda installs their compiler)");
  return true;
}

bool skips_where_no_file_is_kept() {
  const char* const asked = std::getenv("TMPDIR");
  struct statfs system {};
  if (::statfs(asked != nullptr && *asked == '/' ? asked : "/tmp", &system) != 0) return false;
  const auto type = static_cast<unsigned long>(system.f_type);
  if (type != OVERLAYFS_SUPER_MAGIC && type != TMPFS_MAGIC) return false;
  skip_loudly("what is kept of files (/tmp is on overlayfs or tmpfs: TMPDIR=FOLDER names one on a disk)");
  return true;
}

}  // namespace millrace
