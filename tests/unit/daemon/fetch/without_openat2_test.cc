// Kernels before 5.6 have no openat2(2), and sandboxes forbid it: a thread for which a seccomp filter refuses the call
// must get the same answers from the walk, component by component.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "daemon/fetch/open/open_at.h"
#include "daemon/fetch/open/roots.h"
#include "daemon/fetch/read/read_file.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/fetch/strangers.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

bool refuse_openat2(int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// In a thread of its own, because a filter stays with its thread. false: filters are not to be had here.
bool with_openat2_refused(int error, const std::function<void()>& steps) {
  bool refused = false;
  std::thread thread([&] {
    refused = refuse_openat2(error);
    if (refused) steps();
  });
  thread.join();
  return refused;
}

std::string text_of(const Roots& roots, const std::string& path) {
  const Result<OpenFile> file = roots.open_file(path, myself());
  if (!file) return std::string(code_name(file.error().code));
  const Result<EncodedBytes> bytes = read_file(*file, 1_MiB);
  if (!bytes) return bytes.error().message;
  return std::string(reinterpret_cast<const char*>(bytes->view().data()), bytes->size());
}

TEST_CASE("without openat2 paths beneath a root open, and links out of it do not", "[fetch]") {
  const TempFolder temp;
  const std::string root = temp / "root";
  fs::create_directories(root + "/a/b");
  fs::create_directories(temp / "outside");
  write_file(root + "/a/b/file", std::string("inside"));
  write_file(temp / "outside/file", std::string("outside"));
  fs::create_symlink("b/file", root + "/a/within");
  fs::create_symlink("../../outside/file", root + "/a/out");
  fs::create_symlink(temp / "outside", root + "/away");
  auto roots = Roots::open({.folders = {root}});
  REQUIRE(roots);

  for (const int error : {ENOSYS, EPERM}) {
    int seen = 0;
    std::string inside, within, out, away, missing;
    const bool filtered = with_openat2_refused(error, [&] {
      seen = open_beneath(AT_FDCWD, root, O_PATH | O_CLOEXEC) ? 0 : errno;
      inside = text_of(**roots, root + "/a/b/file");
      within = text_of(**roots, root + "/a/within");
      out = text_of(**roots, root + "/a/out");
      away = text_of(**roots, root + "/away/file");
      missing = text_of(**roots, root + "/a/none");
    });
    if (!filtered) return skip_loudly("a kernel without openat2: no seccomp filters here");
    CHECK(seen == error);
    CHECK(inside == "inside");
    CHECK(within == "inside");
    CHECK(out == "PERMISSION_DENIED");
    CHECK(away == "PERMISSION_DENIED");
    CHECK(missing == "NOT_FOUND");
  }
}

}  // namespace
}  // namespace millrace
