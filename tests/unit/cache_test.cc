// The seek indexes' cache: memory, disk, and both together.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/cache/fit_for_database.h"
#include "daemon/cache/index_use.h"
#include "daemon/cache/seek_cache.h"
#include "tests/support/eventually.h"
#include "tests/support/temp_folder.h"

namespace millrace {
namespace {

SharedIndex index_of(std::size_t size, std::uint8_t fill = 1) {
  return std::make_shared<const std::vector<std::uint8_t>>(size, fill);
}

IndexKey numbered(std::uint64_t number) {
  return key_of(FileIdentity{.inode = number}, 7);
}

std::unique_ptr<DiskTier> open_disk(const std::string& path, Bytes most = 64_MiB) {
  auto opened = DiskTier::open(path, most);
  if (!opened) FAIL(opened.error().message);
  return *std::move(opened);
}

void put(DiskTier& disk, std::uint64_t number, std::size_t size = 100) {
  const DiskTier::Change change{numbered(number), index_of(size, static_cast<std::uint8_t>(number))};
  REQUIRE(disk.write({&change, 1}));
}

// In a child, because a damaged database may crash who reads it.
bool is_sound(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    _exit(check_database(path) ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string database(const TempFolder& folder) {
  return folder.path() + "/seek-index.mdb";
}

SeekCache::Options options_in(const TempFolder& folder) {
  return {.memory = 1_MiB, .disk = 64_MiB, .state_dir = folder.path(), .check = is_sound};
}

}  // namespace

TEST_CASE("keys tell identities and contents apart", "[cache]") {
  const FileIdentity file{1, 2, 3, 4, 5};
  const std::byte bytes[3] = {};
  FileIdentity touched = file;
  touched.changed = 6;

  REQUIRE(key_of(file, 1) == key_of(FileIdentity{1, 2, 3, 4, 5}, 1));
  REQUIRE_FALSE(key_of(file, 1) == key_of(touched, 1));
  REQUIRE_FALSE(key_of(file, 1) == key_of(file, 2));
  REQUIRE_FALSE(key_of(ByteView(bytes), 1) == key_of(ByteView(bytes).first(2), 1));
  REQUIRE_FALSE(key_of(ByteView(bytes), 1) == key_of(ByteView(bytes), 2));
}

TEST_CASE("memory forgets the least recently used indexes over its bound", "[cache]") {
  MemoryTier memory(64_KiB);  // 4 KiB a shard
  std::int64_t entries = 0, bytes = 0, evicted = 0;
  const auto note = [&](const MemoryTier::Change& change) {
    entries += change.entries;
    bytes += change.bytes;
    evicted += change.evicted;
  };
  const IndexKey kept = numbered(0);
  note(memory.put(kept, index_of(1000)));
  for (std::uint64_t i = 1; i < 500; ++i) {
    note(memory.put(numbered(i), index_of(1000)));
    REQUIRE(memory.find(kept));
  }

  REQUIRE(evicted == 500 - entries);
  REQUIRE(entries >= 16);
  REQUIRE(bytes <= 64 * 1024);
  REQUIRE_FALSE(memory.find(numbered(1)));
  REQUIRE(memory.put(numbered(1000), index_of(5000)).entries == 0);  // larger than a shard
  note(memory.forget(kept));
  REQUIRE_FALSE(memory.find(kept));
}

TEST_CASE("an index that replaces another counts once", "[cache]") {
  MemoryTier memory(1_MiB);
  memory.put(numbered(1), index_of(100, 1));

  const MemoryTier::Change change = memory.put(numbered(1), index_of(300, 2));

  REQUIRE(change.entries == 0);
  REQUIRE(change.bytes == 200);
  REQUIRE(memory.find(numbered(1))->front() == 2);
}

TEST_CASE("indexes on disk are there again when the database is opened again", "[cache]") {
  const TempFolder folder;
  put(*open_disk(database(folder)), 5);

  const auto disk = open_disk(database(folder));

  const auto found = disk->find(numbered(5));
  REQUIRE(found);
  REQUIRE(*found->index == std::vector<std::uint8_t>(100, 5));
  REQUIRE_FALSE(found->old);
  REQUIRE_FALSE(disk->find(numbered(6)));
  REQUIRE(disk->extent().entries == 1);
}

TEST_CASE("the disk keeps to its bound by dropping the older generation", "[cache]") {
  const TempFolder folder;
  const auto disk = open_disk(database(folder), 1_MiB);
  std::uint64_t evicted = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    std::vector<DiskTier::Change> changes;
    for (std::uint64_t k = 0; k < 20; ++k) changes.push_back({numbered(100 * i + k), index_of(2500)});
    const auto written = disk->write(changes);
    REQUIRE(written);
    evicted += *written;
    REQUIRE(disk->extent().bytes <= (1_MiB).count + 20 * 4096);
  }

  REQUIRE(evicted > 500);
  REQUIRE(evicted + disk->extent().entries == 1200);
  REQUIRE(disk->find(numbered(5919)));
  REQUIRE_FALSE(disk->find(numbered(0)));
  REQUIRE(std::filesystem::file_size(database(folder)) < 4 << 20);
}

TEST_CASE("a forgotten index is gone from both generations", "[cache]") {
  const TempFolder folder;
  const auto disk = open_disk(database(folder));
  put(*disk, 1);
  const DiskTier::Change forget{numbered(1), nullptr};

  REQUIRE(disk->write({&forget, 1}));

  REQUIRE_FALSE(disk->find(numbered(1)));
}

TEST_CASE("a database is whole after its writer was killed", "[cache]") {
  const TempFolder folder;
  put(*open_disk(database(folder)), 1);
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      auto disk = DiskTier::open(database(folder), 64_MiB);
      for (std::uint64_t i = 2; disk; ++i) {
        const DiskTier::Change change{numbered(i), index_of(3000)};
        static_cast<void>(!(*disk)->write({&change, 1}));
      }
      _exit(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 10 * round));  // somewhere among its writes
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    REQUIRE(is_sound(database(folder)));
    REQUIRE(open_disk(database(folder))->find(numbered(1)));
  }
}

TEST_CASE("what is no database of ours is refused", "[cache]") {
  const TempFolder folder;
  std::ofstream(database(folder)) << std::string(100'000, 'x');

  REQUIRE_FALSE(is_sound(database(folder)));
  REQUIRE(DiskTier::open(database(folder), 1_MiB).error().code == Code::kInvalid);
}

TEST_CASE("a database that was cut short is found out, or gives what it was given", "[cache]") {
  constexpr std::uint64_t kIndexes = 300;
  const TempFolder folder;
  const std::string path = database(folder);
  {
    const auto disk = open_disk(path);
    std::vector<DiskTier::Change> changes;
    for (std::uint64_t i = 0; i < kIndexes; ++i) changes.push_back({numbered(i), index_of(1500, 3)});
    REQUIRE(disk->write(changes));
  }
  const auto size = std::filesystem::file_size(path);
  int unsound = 0;
  for (std::uintmax_t cut = size / 8; cut <= size; cut += size / 8) {  // the last one is whole
    const std::string damaged = path + std::to_string(cut);
    std::filesystem::copy_file(path, damaged);
    std::filesystem::resize_file(damaged, cut);
    if (!is_sound(damaged)) {
      ++unsound;
      continue;
    }
    const auto disk = open_disk(damaged);
    for (std::uint64_t i = 0; i < kIndexes; ++i) {
      const auto found = disk->find(numbered(i));
      REQUIRE(found);
      REQUIRE(*found->index == *index_of(1500, 3));
    }
  }

  REQUIRE(unsound >= 6);
  REQUIRE(unsound <= 7);
}

TEST_CASE("a cache gives from disk what another one stored", "[cache]") {
  const TempFolder folder;
  Counters first_counters, counters;
  std::uint64_t seed = 0;
  {
    SeekCache cache(options_in(folder), first_counters);
    seed = cache.seed();
    cache.store(numbered(1), std::vector<std::uint8_t>(500, 9));
  }
  SeekCache cache(options_in(folder), counters);

  REQUIRE(cache.seed() == seed);
  REQUIRE(eventually([&] { return cache.find(numbered(1)) != nullptr; }));
  REQUIRE(*cache.find(numbered(1)) == std::vector<std::uint8_t>(500, 9));
  REQUIRE(counters.stored(MetricId::index_disk_entries) == 1);
}

TEST_CASE("a cache whose database is damaged sets it aside and begins anew", "[cache]") {
  const TempFolder folder;
  std::ofstream(database(folder)) << std::string(100'000, 'x');
  Counters counters;
  {
    SeekCache cache(options_in(folder), counters);
    cache.store(numbered(1), std::vector<std::uint8_t>(500, 9));
  }

  REQUIRE(std::filesystem::exists(database(folder) + ".damaged"));
  REQUIRE(open_disk(database(folder))->find(numbered(1)));
}

TEST_CASE("who waits for the disk finds at once what an earlier cache stored there", "[cache]") {
  const TempFolder folder;
  Counters counters;
  { SeekCache(options_in(folder), counters).store(numbered(1), std::vector<std::uint8_t>(500, 9)); }
  SeekCache cache(options_in(folder), counters);

  cache.wait_for_disk(std::chrono::seconds(60));

  REQUIRE(cache.find(numbered(1)));
}

TEST_CASE("nobody waits for a disk that there is none of", "[cache]") {
  const TempFolder folder;
  std::filesystem::create_directory(database(folder));  // LMDB cannot open it
  Counters counters;
  SeekCache without({.memory = 1_MiB, .disk = 0_B, .state_dir = folder.path(), .check = {}}, counters);
  SeekCache hindered({.memory = 1_MiB, .disk = 1_MiB, .state_dir = folder.path(), .check = {}}, counters);

  without.wait_for_disk(std::chrono::hours(1));  // longer than this test may take
  hindered.wait_for_disk(std::chrono::hours(1));

  REQUIRE_FALSE(without.find(numbered(1)));
  REQUIRE_FALSE(hindered.find(numbered(1)));
}

// In a process of its own, because LMDB wants each to open a database once: opens the cache at the same moment as all
// others, stores one index.
pid_t store_in_child(const TempFolder& folder, std::uint64_t number, const int (&starting_gun)[2]) {
  const pid_t child = fork();
  if (child != 0) return child;
  ::close(starting_gun[1]);
  char nothing = 0;
  if (::read(starting_gun[0], &nothing, 1) != 0) _exit(2);  // its end, once nobody holds the other end any more
  {
    Counters counters;
    SeekCache cache(options_in(folder), counters);
    cache.store(numbered(number), std::vector<std::uint8_t>(500, 9));
  }
  _exit(0);
}

TEST_CASE("of several processes that find a damaged database one sets it aside, and all share the new one", "[cache]") {
  constexpr std::uint64_t kProcesses = 5;
  const TempFolder folder;
  std::ofstream(database(folder)) << std::string(100'000, 'x');
  int gun[2];
  REQUIRE(::pipe2(gun, O_CLOEXEC) == 0);
  std::vector<pid_t> children;
  for (std::uint64_t i = 0; i < kProcesses; ++i) children.push_back(store_in_child(folder, i, gun));
  ::close(gun[1]);

  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  ::close(gun[0]);

  REQUIRE(is_sound(database(folder)));
  const auto disk = open_disk(database(folder));
  for (std::uint64_t i = 0; i < kProcesses; ++i) REQUIRE(disk->find(numbered(i)));
}

TEST_CASE("network file systems are told from local ones", "[cache]") {
  for (const std::uint64_t remote : {0x6969ULL, 0xFF534D42ULL, 0xFE534D42ULL, 0x01021997ULL, 0x65735546ULL})
    REQUIRE(is_remote_file_system(remote));
  REQUIRE(is_remote_file_system(0xFFFFFFFFFE534D42ULL));  // as a signed word of 32 bits gives it
  for (const std::uint64_t local : {0xEF53ULL, 0x58465342ULL, 0x9123683EULL, 0x01021994ULL, 0x794C7630ULL})
    REQUIRE_FALSE(is_remote_file_system(local));  // ext4, XFS, Btrfs, tmpfs, overlayfs
}

TEST_CASE("a folder that holds no database is told with the reason", "[cache]") {
  const TempFolder folder;

  REQUIRE(unfit_for_database(folder.path()).empty());
  REQUIRE_THAT(unfit_for_database(folder / "missing"), Catch::Contains("missing") && Catch::Contains("No such file"));
  REQUIRE_THAT(unfit_for_database("/dev/null"), Catch::Contains("/dev/null"));
}

TEST_CASE("a cache without a usable state directory works in memory", "[cache]") {
  Counters counters;
  SeekCache cache({.memory = 1_MiB, .disk = 1_MiB, .state_dir = "/nonexistent/folder", .check = {}}, counters);
  REQUIRE_THAT(cache.whereabouts(), Catch::StartsWith("in memory only: ") && Catch::Contains("/nonexistent/folder"));

  cache.store(numbered(1), std::vector<std::uint8_t>(500, 9));
  REQUIRE(cache.find(numbered(1)));
  cache.forget(numbered(1));

  REQUIRE_FALSE(cache.find(numbered(1)));
  REQUIRE(counters.stored(MetricId::index_entries) == 0);
  REQUIRE(counters.stored(MetricId::index_bytes) == 0);
}

}  // namespace millrace
