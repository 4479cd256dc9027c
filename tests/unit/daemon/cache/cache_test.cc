// Seek indexes in the cache: memory, disk, and both together.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "daemon/cache/disk/fit_for_store.h"
#include "daemon/cache/image_cache.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

CacheKey numbered_source(std::uint64_t number) {
  return key_of(FileIdentity{.inode = number}, 7);
}

ImageCache::Options options_in(const TempFolder& folder) {
  return {.memory = 1_MiB, .disk = 64_MiB, .state_dir = folder.path()};
}

void keep_index(ImageCache& cache, std::uint64_t number, std::size_t size = 500, std::uint8_t fill = 9) {
  const std::vector<std::uint8_t> bytes(size, fill);
  cache.store(numbered_source(number), CachedKind::kIndex,
              {.bytes = CachedBlock::copy_of(std::as_bytes(std::span(bytes)))}, StoredFacts{});
}

std::optional<CachedEntry> find_index(ImageCache& cache, std::uint64_t number) {
  return cache.find(numbered_source(number), CachedKind::kIndex);
}

// Of an index whose bytes are all the same.
std::byte fill_of(ImageCache& cache, std::uint64_t number) {
  return find_index(cache, number).value().bytes->view().back();
}

}  // namespace

TEST_CASE("a cache gives from disk what another one stored", "[cache]") {
  const TempFolder folder;
  Counters first_counters, counters;
  std::uint64_t seed = 0;
  {
    ImageCache cache(options_in(folder), first_counters);
    seed = cache.seed();
    keep_index(cache, 1);
  }
  ImageCache cache(options_in(folder), counters);

  REQUIRE(cache.seed() == seed);
  REQUIRE(eventually([&] { return find_index(cache, 1).has_value(); }));
  REQUIRE(fill_of(cache, 1) == std::byte{9});
  REQUIRE(counters.stored(MetricId::index_disk_entries) == 1);
}

TEST_CASE("a cache does not give from disk what was damaged there, and stores it again", "[cache]") {
  const TempFolder folder;
  Counters counters;
  {
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, 1);
  }
  for (const auto& file : std::filesystem::directory_iterator(folder / "cache")) {
    if (file.path().extension() == ".mrc") std::ofstream(file.path()) << std::string(500, 8);
  }
  {
    ImageCache cache(options_in(folder), counters);
    cache.wait_for_disk(std::chrono::seconds(60));
    REQUIRE_FALSE(find_index(cache, 1));
    keep_index(cache, 1, 500, 7);
  }
  ImageCache cache(options_in(folder), counters);
  cache.wait_for_disk(std::chrono::seconds(60));

  REQUIRE(fill_of(cache, 1) == std::byte{7});
}

TEST_CASE("an index that was forgotten is on disk no more", "[cache]") {
  const TempFolder folder;
  Counters counters;
  {
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, 1);
    keep_index(cache, 2);
    cache.forget(numbered_source(1), CachedKind::kIndex);
  }
  ImageCache cache(options_in(folder), counters);
  cache.wait_for_disk(std::chrono::seconds(60));

  REQUIRE_FALSE(find_index(cache, 1));
  REQUIRE(find_index(cache, 2));
}

TEST_CASE("an older version's database is removed", "[cache]") {
  const TempFolder folder;
  for (const char* const name : {"seek-index.mdb", "seek-index.mdb-lock", "seek-index.mdb.damaged"})
    std::ofstream(folder / name) << "database";
  Counters counters;

  ImageCache(options_in(folder), counters).wait_for_disk(std::chrono::seconds(60));

  for (const char* const name : {"seek-index.mdb", "seek-index.mdb-lock", "seek-index.mdb.damaged"})
    REQUIRE_FALSE(std::filesystem::exists(folder / name));
}

TEST_CASE("indexes that are used stay on disk, and the bound is kept", "[cache]") {
  const TempFolder folder;
  Counters counters;
  ImageCache::Options options = options_in(folder);
  options.disk = 1_MiB;
  std::uint64_t next = 1;
  for (int start = 0; start < 8; ++start) {  // memory forgets, so that the disk is asked
    ImageCache cache(options, counters);
    cache.wait_for_disk(std::chrono::seconds(60));
    if (start == 0) keep_index(cache, 0);
    REQUIRE(find_index(cache, 0));
    for (int i = 0; i < 60; ++i) keep_index(cache, next++, 4000, 1);
  }

  REQUIRE(counters.stored(MetricId::cache_disk_evictions) > 100);
  REQUIRE(counters.stored(MetricId::index_disk_pending) == 0);
}

TEST_CASE("a disk that refuses what is written is read on", "[cache]") {
  const TempFolder folder;
  Counters counters;
  {
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, 1);
  }
  ImageCache::Options options = options_in(folder);
  options.disk = 200_KiB;
  ImageCache cache(options, counters);
  cache.wait_for_disk(std::chrono::seconds(60));

  keep_index(cache, 2, 300'000, 9);  // more than all of the disk's room

  REQUIRE(eventually([&] { return counters.stored(MetricId::index_disk_pending) == 0; }));
  REQUIRE(find_index(cache, 1));
}

TEST_CASE("a seed that was cut is drawn anew, and kept", "[cache]") {
  const TempFolder folder;
  std::ofstream(folder / "seek-index.seed") << "cut";

  const StateSeed seed = seed_of(folder.path());

  REQUIRE(seed.kept);
  REQUIRE(seed_of(folder.path()).value == seed.value);
  REQUIRE_FALSE(seed_of("").kept);
  REQUIRE_FALSE(seed_of(folder / "missing").kept);
}

TEST_CASE("a seed that others may read or have made is none of ours", "[cache]") {
  const TempFolder folder;
  const StateSeed seed = seed_of(folder.path());
  REQUIRE(seed.kept);
  const std::string path = folder / "seek-index.seed";

  std::filesystem::permissions(path, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  const StateSeed other = seed_of(folder.path());
  REQUIRE_FALSE(other.kept);
  REQUIRE(other.value != seed.value);

  std::filesystem::permissions(path, std::filesystem::perms::group_read, std::filesystem::perm_options::remove);
  REQUIRE(seed_of(folder.path()).value == seed.value);
}

TEST_CASE("with a secret that cannot be kept nothing is on disk, and what is there stays", "[cache]") {
  const TempFolder folder;
  Counters counters;
  {
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, 1);
  }
  const std::string seed = folder / "seek-index.seed";
  std::filesystem::rename(seed, seed + "s");
  std::filesystem::create_directory(seed);
  {
    ImageCache without(options_in(folder), counters);
    REQUIRE_THAT(without.whereabouts(), Catch::StartsWith("in memory only: ") && Catch::Contains("seek-index.seed"));
  }
  std::filesystem::remove(seed);
  std::filesystem::rename(seed + "s", seed);
  ImageCache cache(options_in(folder), counters);
  cache.wait_for_disk(std::chrono::seconds(60));

  REQUIRE(find_index(cache, 1));
}

TEST_CASE("who waits for the disk finds at once what an earlier cache stored there", "[cache]") {
  const TempFolder folder;
  Counters counters;
  {
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, 1);
  }
  ImageCache cache(options_in(folder), counters);

  cache.wait_for_disk(std::chrono::seconds(60));

  REQUIRE(find_index(cache, 1));
}

TEST_CASE("nobody waits for a disk that there is none of", "[cache]") {
  const TempFolder folder;
  std::ofstream(folder / "cache") << "no folder";
  Counters counters;
  ImageCache without({.memory = 1_MiB, .disk = 0_B, .state_dir = folder.path()}, counters);
  ImageCache hindered({.memory = 1_MiB, .disk = 1_MiB, .state_dir = folder.path()}, counters);

  without.wait_for_disk(std::chrono::hours(1));  // longer than this test may take
  hindered.wait_for_disk(std::chrono::hours(1));

  REQUIRE_FALSE(find_index(without, 1));
  REQUIRE_FALSE(find_index(hindered, 1));
}

// In a process of its own: opens the cache at the same moment as all others, stores one index.
pid_t store_in_child(const TempFolder& folder, std::uint64_t number, const int (&starting_gun)[2]) {
  const pid_t child = fork();
  if (child != 0) return child;
  ::close(starting_gun[1]);
  char nothing = 0;
  if (::read(starting_gun[0], &nothing, 1) != 0) _exit(2);  // its end, once nobody holds the other end any more
  {
    Counters counters;
    ImageCache cache(options_in(folder), counters);
    keep_index(cache, number);
  }
  _exit(0);
}

TEST_CASE("processes that begin at the same moment share one store and one secret", "[cache]") {
  constexpr std::uint64_t kProcesses = 5;
  const TempFolder folder;
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

  Counters counters;
  ImageCache cache(options_in(folder), counters);
  cache.wait_for_disk(std::chrono::seconds(60));
  for (std::uint64_t i = 0; i < kProcesses; ++i) REQUIRE(find_index(cache, i));
}

TEST_CASE("network file systems are told from local ones", "[cache]") {
  for (const std::uint64_t remote : {0x6969ULL, 0xFF534D42ULL, 0xFE534D42ULL, 0x01021997ULL, 0x65735546ULL})
    REQUIRE(is_remote_file_system(remote));
  REQUIRE(is_remote_file_system(0xFFFFFFFFFE534D42ULL));  // as a signed word of 32 bits gives it
  for (const std::uint64_t local : {0xEF53ULL, 0x58465342ULL, 0x9123683EULL, 0x01021994ULL, 0x794C7630ULL})
    REQUIRE_FALSE(is_remote_file_system(local));  // ext4, XFS, Btrfs, tmpfs, overlayfs
}

TEST_CASE("a folder that holds no store is told with the reason", "[cache]") {
  const TempFolder folder;

  REQUIRE(unfit_for_store(folder.path()).empty());
  REQUIRE(unfit_for_store("/tmp").empty());  // all may write to it, but not to others' files in it
  REQUIRE_THAT(unfit_for_store(folder / "missing"), Catch::Contains("missing") && Catch::Contains("No such file"));
  REQUIRE_THAT(unfit_for_store("/dev/null"), Catch::Contains("/dev/null"));
}

TEST_CASE("a folder in which others can exchange files holds no store and no secret, and gets none", "[cache]") {
  using std::filesystem::perms;
  const TempFolder folder;
  SECTION("all may write to it") {
    std::filesystem::permissions(folder.path(), perms::all);
  }
  SECTION("it is somebody else's") {
    if (::geteuid() != 0) return skip_loudly("a state directory of somebody else's (needs root to make one)");
    REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
  }

  REQUIRE_THAT(unfit_for_store(folder.path()), Catch::Contains(folder.path() + " belongs to another user, or all may"));
  REQUIRE_FALSE(seed_of(folder.path()).kept);
  Counters counters;
  REQUIRE_THAT(ImageCache(options_in(folder), counters).whereabouts(), Catch::StartsWith("in memory only: "));
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a secret is never written into a file that is there already", "[cache]") {
  const TempFolder folder;
  const std::string other = folder / "other", fresh = folder / "seek-index.seed." + std::to_string(::getpid());
  std::ofstream(other) << "somebody's";
  std::filesystem::create_hard_link(other, fresh);

  REQUIRE(seed_of(folder.path()).kept);

  REQUIRE(std::filesystem::file_size(other) == 10);
  REQUIRE_FALSE(std::filesystem::exists(fresh));
}

TEST_CASE("a cache without a usable state directory works in memory", "[cache]") {
  Counters counters;
  ImageCache cache({.memory = 1_MiB, .disk = 1_MiB, .state_dir = "/nonexistent/folder"}, counters);
  REQUIRE_THAT(cache.whereabouts(), Catch::StartsWith("in memory only: ") && Catch::Contains("/nonexistent/folder"));

  keep_index(cache, 1);
  REQUIRE(find_index(cache, 1));
  cache.forget(numbered_source(1), CachedKind::kIndex);

  REQUIRE_FALSE(find_index(cache, 1));
  REQUIRE(counters.stored(MetricId::index_entries) == 0);
  REQUIRE(counters.stored(MetricId::index_bytes) == 0);
}

}  // namespace millrace
