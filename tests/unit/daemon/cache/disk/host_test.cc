// The store on disk and the host: daemons beside each other, ends at any moment, file systems that are full, read-only,
// gone, or without holes.
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/support/rounds.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/cache/disk/rig.h"

namespace millrace {
namespace {

// Runs `work` in a process of its own.
pid_t in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child != 0) return child;
  work();
  _exit(0);
}

int status_of(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

// A file system of its own, where this process may mount one.
class Mounted {
 public:
  Mounted(const char* type, const char* options) : there_(::mount(type, path().c_str(), type, 0, options) == 0) {}
  ~Mounted() {
    if (there_) ::umount2(path().c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

  bool there() const { return there_; }
  const std::string& path() const { return folder_.path(); }
  std::string store() const { return path() + "/cache"; }

 private:
  const TempFolder folder_;
  const bool there_;
};

std::size_t size_of_host_entry(std::uint64_t number) {
  return number % 7 == 0 ? 60'000 : 500 + number % 3000;
}

// Numbers from `first` on without end, half of them forgotten again; tells each that is written.
void write_without_end(const std::string& path, std::uint64_t first, int tell) {
  const auto store = open_store(path, 8_MiB);
  for (std::uint64_t i = first;; ++i) {
    put_entry(*store, i, size_of_host_entry(i), CachedKind::kIndex);
    if (::write(tell, &i, sizeof i) != sizeof i) _exit(1);
    if (i % 2 == 0) store->forget(numbered_key(i / 2), CachedKind::kIndex);
    if (i % 50 == 0) static_cast<void>(store->tend().has_value());
  }
}

}  // namespace

TEST_CASE("a store is whole after its writer was killed, again and again, and its files were cut", "[cache]") {
  const TempFolder folder;
  const std::string path = store_in(folder);
  std::uint64_t next = 1;
  for (int round = 0; round < rounds(12); ++round) {
    int told[2];
    REQUIRE(::pipe(told) == 0);
    const pid_t child = in_child([&] { write_without_end(path, next, told[1]); });
    ::close(told[1]);
    std::uint64_t last = 0;
    for (int i = 0; i < 40 + 23 * round; ++i) REQUIRE(::read(told[0], &last, sizeof last) == sizeof last);
    kill(child, SIGKILL);
    std::uint64_t more = 0;
    while (::read(told[0], &more, sizeof more) == sizeof more) last = more;
    ::close(told[0]);
    REQUIRE(WIFSIGNALED(status_of(child)));

    REQUIRE(has_entry(*open_store(path, 8_MiB), last, size_of_host_entry(last), CachedKind::kIndex));
    if (round % 3 == 2) {  // as if the power had failed
      for (const std::string& file : files_of(path, round % 2 == 0 ? ".mrt" : ".mrc"))
        std::filesystem::resize_file(file, std::filesystem::file_size(file) * 9 / 10 + static_cast<unsigned>(round));
    }
    const auto store = open_store(path, 8_MiB);
    for (std::uint64_t i = 1; i <= last; ++i) has_entry(*store, i, size_of_host_entry(i), CachedKind::kIndex);
    next = last + 1;
  }
  REQUIRE(open_store(path, 8_MiB)->extent().entries > 100);
}

TEST_CASE("several processes fill one folder, and each has what all have written", "[cache]") {
  constexpr std::uint64_t kProcesses = 4, kEach = 200;
  const TempFolder folder;
  const std::string path = store_in(folder);
  const auto own = open_store(path);
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < kProcesses; ++p) {
    children.push_back(in_child([&, p] {
      const auto store = open_store(path);
      for (std::uint64_t i = 0; i < kEach; ++i) {
        put_entry(*store, 1000 * p + i, size_of_host_entry(i), CachedKind::kIndex);
        put_entry(*store, 999'000 + i % 10, size_of_host_entry(i % 10), CachedKind::kIndex);  // all of them write these
        if (i % 20 == 0 && !store->tend()) _exit(2);
      }
    }));
  }
  for (std::uint64_t i = 0; i < kEach; ++i) put_entry(*own, 9000 + i, size_of_host_entry(i), CachedKind::kIndex);
  for (const pid_t child : children) REQUIRE(status_of(child) == 0);
  REQUIRE(own->tend());

  for (std::uint64_t p : {0, 1, 2, 3, 9}) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      CAPTURE(p, i);
      REQUIRE(has_entry(*own, 1000 * p + i, size_of_host_entry(i), CachedKind::kIndex));
    }
  }
  for (std::uint64_t i = 0; i < 10; ++i)
    REQUIRE(has_entry(*own, 999'000 + i, size_of_host_entry(i), CachedKind::kIndex));
  REQUIRE(own->extent().entries == 5 * kEach + 10);
  REQUIRE(own->verify({}).wrong == 0);
}

TEST_CASE("what one daemon forgets is gone for others, and what it drops is let go of", "[cache]") {
  const TempFolder folder;
  const auto one = open_store(store_in(folder)), other = open_store(store_in(folder));
  put_entry(*one, 1, 100'000);
  put_entry(*one, 2, 100'000);
  REQUIRE(other->tend());
  REQUIRE(has_entry(*other, 1, 100'000));

  one->forget(numbered_key(1), CachedKind::kPacked);
  REQUIRE(one->tend());

  REQUIRE_FALSE(has_entry(*other, 1, 100'000));
  REQUIRE(has_entry(*other, 2, 100'000));
  one->drop_all();
  REQUIRE(other->tend());
  REQUIRE_FALSE(other->find(numbered_key(2), CachedKind::kPacked));
  REQUIRE(other->extent().taken == 0);
}

TEST_CASE("daemons that share a folder keep its bound together", "[cache]") {
  const TempFolder folder;
  const auto one = open_store(store_in(folder), 4_MiB), other = open_store(store_in(folder), 4_MiB);
  for (std::uint64_t i = 0; i < 200; ++i) {
    put_entry(i % 2 == 0 ? *one : *other, i, 50'000);
    if (i % 10 == 0) REQUIRE((one->tend() && other->tend()));
  }
  REQUIRE((one->tend() && other->tend()));

  std::uint64_t size = 0;
  for (const std::string& file : files_of(store_in(folder), "")) size += std::filesystem::file_size(file);
  REQUIRE(size <= (4_MiB).count);
  REQUIRE((has_entry(*one, 198, 50'000) && has_entry(*one, 199, 50'000) && has_entry(*other, 198, 50'000)));
}

TEST_CASE("a file system without room costs what is being written, and nothing else", "[cache]") {
  const Mounted small("tmpfs", "size=1m");
  if (!small.there()) return skip_loudly("a store on a full file system (needs the right to mount one)");
  const auto store = open_store(small.store());
  std::uint64_t written = 0;
  Result<std::uint64_t> last = 0;
  while ((last = write_entry(*store, written, 20'000))) ++written;

  REQUIRE(last.error().code == Code::kExhausted);
  REQUIRE(written > 40);
  REQUIRE(std::filesystem::file_size(files_of(small.store(), ".mrc").front()) == written * 20'000);
  REQUIRE_FALSE(write_entry(*store, 1000, 50'000));
  for (std::uint64_t i = 0; i < written; ++i) REQUIRE(has_entry(*store, i, 20'000));
  for (std::uint64_t i = 0; i < 10; ++i) store->forget(numbered_key(i), CachedKind::kPacked);
  put_entry(*store, 1000, 50'000);
  const auto again = open_store(small.store());
  REQUIRE(has_entry(*again, 1000, 50'000));
  REQUIRE(again->extent().entries == written - 10 + 1);
}

TEST_CASE("a file system that became read-only is read, and refuses what is new", "[cache]") {
  const Mounted mounted("tmpfs", "size=4m");
  if (!mounted.there()) return skip_loudly("a store on a read-only file system (needs the right to mount one)");
  put_entry(*open_store(mounted.store()), 1, 20'000);
  REQUIRE(::mount("tmpfs", mounted.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  const auto store = open_store(mounted.store());

  REQUIRE(has_entry(*store, 1, 20'000));
  REQUIRE_FALSE(write_entry(*store, 2, 20'000));
  store->forget(numbered_key(1), CachedKind::kPacked);
  REQUIRE(store->tend());
  REQUIRE_FALSE(store->find(numbered_key(1), CachedKind::kPacked));
}

TEST_CASE("where files have no holes, room comes back by segments", "[cache]") {
  const Mounted mounted("ramfs", "");
  if (!mounted.there()) return skip_loudly("a store on a file system without holes (needs the right to mount one)");
  const auto store = open_store(mounted.store(), 32_MiB);
  for (std::uint64_t i = 0; i < 100; ++i) put_entry(*store, i, 100'000);
  const std::uint64_t before = store->extent().taken;
  for (std::uint64_t i = 0; i < 100; ++i) {
    if (i % 4 != 0) store->forget(numbered_key(i), CachedKind::kPacked);
  }

  for (int i = 0; i < 3; ++i) REQUIRE(store->tend());

  REQUIRE(before > 100 * 100'000);
  REQUIRE(store->extent().taken < before / 2);
  for (std::uint64_t i = 0; i < 100; i += 4) REQUIRE(has_entry(*store, i, 100'000));
}

TEST_CASE("a folder that disappears takes its entries with it, and no daemon", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  put_entry(*store, 1, 20'000);
  std::filesystem::remove_all(store_in(folder));

  const Result<std::uint64_t> tended = store->tend();

  REQUIRE_FALSE(tended);
  REQUIRE(tended.error().message == store_in(folder) + " was removed: it is made again when millraced starts again");
  REQUIRE_FALSE(store->find(numbered_key(1), CachedKind::kPacked));
  REQUIRE_FALSE(write_entry(*store, 2, 20'000));
  REQUIRE(store->extent().taken == 0);
}

}  // namespace millrace
