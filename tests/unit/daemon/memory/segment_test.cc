#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>

#include "daemon/memory/segment.h"
#include "proto/shm/segment_layout.h"
#include "tests/support/host/segment_budget.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

std::set<std::string> names_of_ours() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().starts_with("millrace-")) names.insert(entry.path().filename().string());
  }
  return names;
}

struct stat status_of(int fd) {
  struct stat status {};
  REQUIRE(::fstat(fd, &status) == 0);
  return status;
}

Bytes shared_memory_size() {
  struct statvfs status {};
  REQUIRE(::statvfs("/dev/shm", &status) == 0);
  return Bytes{status.f_blocks} * status.f_frsize;
}

Bytes shared_memory_free() {
  struct statvfs status {};
  REQUIRE(::statvfs("/dev/shm", &status) == 0);
  return Bytes{status.f_bavail} * status.f_frsize;
}

TEST_CASE("a segment has every byte that was asked for, zeroed and allocated", "[slots]") {
  SegmentBudget budget(64_MiB);

  const auto segment = budget.create(2_MiB + 4096_B);

  REQUIRE(segment);
  REQUIRE((*segment)->size() == 2_MiB + 4096_B);
  const ByteView bytes((*segment)->data(), (*segment)->size().count);
  REQUIRE(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  const struct stat status = status_of((*segment)->read_only_fd());
  REQUIRE(static_cast<std::uint64_t>(status.st_size) == (2_MiB + 4096_B).count);
  REQUIRE(static_cast<std::uint64_t>(status.st_blocks) * 512 >= (2_MiB + 4096_B).count);
}

TEST_CASE("a segment has no name and is its owner's alone", "[slots]") {
  SegmentBudget budget(64_MiB);
  const std::set<std::string> before = names_of_ours();

  const auto segment = budget.create(64_KiB);

  REQUIRE(segment);
  REQUIRE(names_of_ours() == before);
  const std::string link = "/proc/self/fd/" + std::to_string((*segment)->read_only_fd());
  REQUIRE(std::filesystem::read_symlink(link).string().starts_with("/dev/shm/#"));  // it never had one
  const struct stat status = status_of((*segment)->read_only_fd());
  REQUIRE(status.st_nlink == 0);
  REQUIRE((status.st_mode & 07777) == 0600);
}

// From now on, and in this thread alone, no file without a name is made. false: filters are not to be had here.
bool refuse_nameless_files() {
  constexpr std::size_t kFlags = offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_CASE("where /dev/shm makes no nameless files a segment has a name for a moment, and is the same", "[slots]") {
  SegmentBudget budget(64_MiB);
  bool refused = false;
  Result<std::shared_ptr<Segment>> segment = Error{Code::kInternal, "not made"};
  std::thread([&] {
    refused = refuse_nameless_files();
    if (refused) segment = budget.create(64_KiB);
  }).join();
  if (!refused) return skip_loudly("a /dev/shm without nameless files (needs seccomp filters)");

  REQUIRE(segment);
  const struct stat status = status_of((*segment)->read_only_fd());
  CHECK(status.st_nlink == 0);
  CHECK((status.st_mode & 07777) == 0600);
  const std::string link = "/proc/self/fd/" + std::to_string((*segment)->read_only_fd());
  CHECK(std::filesystem::read_symlink(link).string().starts_with("/dev/shm/millrace-"));
  CHECK((::fcntl((*segment)->read_only_fd(), F_GETFL) & O_ACCMODE) == O_RDONLY);
}

TEST_CASE("the descriptor of a segment reads and does not write", "[slots]") {
  SegmentBudget budget(64_MiB);
  const auto segment = budget.create(64_KiB);
  REQUIRE(segment);
  (*segment)->data()[100] = std::byte{42};
  const int fd = (*segment)->read_only_fd();

  void* const readable = ::mmap(nullptr, (64_KiB).count, PROT_READ, MAP_SHARED, fd, 0);
  void* const writable = ::mmap(nullptr, (64_KiB).count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

  REQUIRE(readable != MAP_FAILED);
  REQUIRE(static_cast<const std::byte*>(readable)[100] == std::byte{42});
  REQUIRE(writable == MAP_FAILED);
  REQUIRE(::ftruncate(fd, 0) != 0);
  REQUIRE((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  ::munmap(readable, (64_KiB).count);
}

TEST_CASE("a revoked segment's memory goes with it even while a client holds its descriptor", "[slots]") {
  SegmentBudget budget(64_MiB);
  auto segment = budget.create(1_MiB);
  REQUIRE(segment);
  const UniqueFd held(::dup((*segment)->read_only_fd()));
  REQUIRE(budget.used() == 1_MiB);

  (*segment)->revoke();
  segment->reset();

  REQUIRE(status_of(held.get()).st_size == 0);
  REQUIRE(status_of(held.get()).st_blocks == 0);
  REQUIRE(budget.used() == 0_B);
}

TEST_CASE("a segment larger than /dev/shm is refused before anything is taken, and says how to enlarge it", "[slots]") {
  SegmentBudget budget(Bytes{std::numeric_limits<std::uint64_t>::max()});
  const std::set<std::string> before = names_of_ours();

  const auto segment = budget.create(shared_memory_size() + 1_GiB);

  REQUIRE_FALSE(segment);
  REQUIRE(segment.error().code == Code::kExhausted);
  REQUIRE(segment.error().message.starts_with("/dev/shm has " + to_text(shared_memory_size()) + ", "));
  REQUIRE(segment.error().message.find(" free; the session asks for ") != std::string::npos);
  REQUIRE(segment.error().message.find("mount -o remount,size=") != std::string::npos);
  REQUIRE(segment.error().message.find("--shm-size=") != std::string::npos);
  REQUIRE(budget.used() == 0_B);
  REQUIRE(names_of_ours() == before);
}

TEST_CASE("a reserved segment has its addresses and no byte, and is filled as far as asked", "[slots]") {
  SegmentBudget budget(64_MiB);
  const auto segment = budget.reserve(4_MiB);
  REQUIRE(segment);
  REQUIRE(budget.used() == 4_MiB);
  REQUIRE(budget.promised() == 4_MiB);
  REQUIRE(status_of((*segment)->read_only_fd()).st_size == 0);

  REQUIRE((*segment)->fill_to(1_MiB));

  REQUIRE((*segment)->filled() == 1_MiB);
  REQUIRE(budget.promised() == 3_MiB);
  const struct stat status = status_of((*segment)->read_only_fd());
  REQUIRE(static_cast<std::uint64_t>(status.st_size) == (1_MiB).count);
  REQUIRE(static_cast<std::uint64_t>(status.st_blocks) * 512 == (1_MiB).count);
}

TEST_CASE("what is promised to one segment is not free for another", "[slots]") {
  SegmentBudget budget(Bytes{std::numeric_limits<std::uint64_t>::max()});
  const Bytes most{shared_memory_free().count / 4 * 3};
  const auto first = budget.reserve(most);
  REQUIRE(first);

  const auto second = budget.reserve(most);

  REQUIRE_FALSE(second);
  REQUIRE(second.error().code == Code::kExhausted);
  REQUIRE(second.error().message.find("promised to other sessions") != std::string::npos);
  REQUIRE(budget.used() == most);
}

TEST_CASE("the rest of a segment that is given up goes back with its charge", "[slots]") {
  SegmentBudget budget(64_MiB);
  auto segment = *budget.reserve(8_MiB);
  REQUIRE(segment->fill_to(4_MiB));

  segment->give_up_rest(3_MiB);

  REQUIRE(segment->filled() == 3_MiB);
  REQUIRE(budget.used() == 3_MiB);
  REQUIRE(budget.promised() == 0_B);
  REQUIRE(static_cast<std::uint64_t>(status_of(segment->read_only_fd()).st_size) == (3_MiB).count);
  segment.reset();
  REQUIRE(budget.used() == 0_B);
}

}  // namespace
}  // namespace millrace
