// Blocks that are asked of the kernel in one piece: where they lie, and that they are read.
#include "daemon/fetch/read/block_ahead.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "proto/base/unique_fd.h"
#include "tests/support/host/eventually.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

using Ranges = std::vector<Dataset::Range>;

// Parts of the file "a", but for those of `of_other`, which are of "b".
Dataset dataset_of_parts(const Ranges& ranges, const std::vector<std::size_t>& of_other = {}) {
  std::vector<Dataset::Entry> entries(ranges.size(), Dataset::Entry{0, 1, -1});
  for (const std::size_t other : of_other) entries[other] = Dataset::Entry{1, 1, -1};
  return {"/data", "ab", entries, {}, 0, Skipped{}, Dataset::Parts{.ranges = ranges, .stamps = {}}};
}

constexpr std::size_t kPages = 2'048;

std::size_t pages_in_memory(int fd, std::size_t page) {
  void* const mapped = mmap(nullptr, kPages * page, PROT_READ, MAP_SHARED, fd, 0);
  REQUIRE(mapped != MAP_FAILED);
  std::vector<unsigned char> is_there(kPages);
  REQUIRE(mincore(mapped, kPages * page, is_there.data()) == 0);
  munmap(mapped, kPages * page);
  return static_cast<std::size_t>(
      std::ranges::count_if(is_there, [](unsigned char flags) { return (flags & 1U) != 0; }));
}

}  // namespace

TEST_CASE("a block lies where its parts of the file lie", "[fetch]") {
  const Ranges ranges{{512, 400_B}, {1'024, 200_B}, {1'536, 50_B}, {2'048, 300_B}, {4'096, 10_B}};
  const Dataset dataset = dataset_of_parts(ranges);

  CHECK(place_of_block(dataset, SampleId{0}, 2) == Dataset::Range{512, 712_B});
  CHECK_FALSE(place_of_block(dataset, SampleId{4}, 2));  // alone
  CHECK_FALSE(place_of_block(dataset, SampleId{1}, 5));  // most of it is something else
  const Dataset of_two = dataset_of_parts({{0, 10_B}, {10, 10_B}, {20, 10_B}, {30, 10_B}}, {1, 3});
  CHECK(place_of_block(of_two, SampleId{0}, 4) == Dataset::Range{0, 30_B});
  CHECK(place_of_block(of_two, SampleId{3}, 4) == Dataset::Range{10, 30_B});
}

TEST_CASE("what a client says of a block's parts bounds what is asked", "[fetch]") {
  const Dataset large = dataset_of_parts({{0, Bytes{1ULL << 62U}}, {1ULL << 62U, Bytes{(1ULL << 62U) - 1}}});
  const Dataset wide = dataset_of_parts({{0, 10_B}, {1ULL << 62U, 10_B}});
  const Dataset whole = dataset_of_parts({{0, Dataset::Range::kWhole}, {0, Dataset::Range::kWhole}});

  CHECK_FALSE(place_of_block(large, SampleId{0}, 2));
  CHECK_FALSE(place_of_block(wide, SampleId{1}, 4'000'000'000U));
  CHECK_FALSE(place_of_block(whole, SampleId{0}, 2));
  const Dataset long_one = dataset_of_parts({{0, 60_MiB}, {Bytes{60_MiB}.count, 60_MiB}});
  CHECK(place_of_block(long_one, SampleId{1}, 2) == Dataset::Range{0, kMostAskedAhead});
}

TEST_CASE("a block that is asked for comes into memory without being read", "[fetch]") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const Tree tree;
  write_file(tree / "shard.tar", std::string(kPages * page, 'x'));
  const UniqueFd fd(open((tree / "shard.tar").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(fsync(fd.get()) == 0);
  REQUIRE(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  if (pages_in_memory(fd.get(), page) > kPages / 2)
    return skip_loudly("blocks that are read ahead: the temporary folder's file system lies in memory");

  ask_ahead(fd.get(), {0, Bytes{kPages * page}});

  CHECK(eventually([&] { return pages_in_memory(fd.get(), page) == kPages; }));
}

}  // namespace millrace
