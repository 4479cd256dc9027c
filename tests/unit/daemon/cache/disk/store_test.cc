// The store on disk: what is put in comes out, the bound is kept, and room is given back.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/skip.h"
#include "tests/unit/daemon/cache/disk/rig.h"

namespace millrace {
namespace {

// As the file system has it, whatever the store believes.
std::uint64_t blocks_of(const std::string& store) {
  std::uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(store)) {
    struct stat status {};
    if (::stat(file.path().c_str(), &status) == 0) bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

// Whose entries are all forgotten as one of them is read, and their places given back.
std::atomic<DiskStore*> forgetful{nullptr};

ssize_t read_what_is_forgotten(int file, void* to, std::size_t size, off_t at) {
  DiskStore* const store = forgetful;
  if (store == nullptr) return ::pread(file, to, size, at);
  for (std::uint64_t i = 0; i < 20; ++i) store->forget(numbered_key(i), CachedKind::kPacked);
  std::memset(to, 0, size);
  return static_cast<ssize_t>(size);
}

}  // namespace

TEST_CASE("entries of each kind and size come out of the store as they went in", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  const std::size_t sizes[] = {1, 2000, 4096, 32 << 10, 130'000, 3 << 20};
  for (std::size_t i = 0; i < 6; ++i) put_entry(*store, i, sizes[i], static_cast<CachedKind>(i % 3));

  const auto again = open_store(store_in(folder));

  for (const auto& each : {store.get(), again.get()}) {
    for (std::size_t i = 0; i < 6; ++i) REQUIRE(has_entry(*each, i, sizes[i], static_cast<CachedKind>(i % 3)));
    REQUIRE_FALSE(each->find(numbered_key(0), CachedKind::kTensor));
    REQUIRE_FALSE(each->find(numbered_key(6), CachedKind::kIndex));
    REQUIRE(each->extent().entries == 6);
    REQUIRE(each->extent().kinds[2].bytes == 4096 + (3 << 20));
    REQUIRE(each->extent().taken == blocks_of(store_in(folder)));
  }
}

TEST_CASE("readable zeroes stand behind a packed form that was read", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  put_entry(*store, 1, 1000);

  const auto bytes = store->read(*store->find(numbered_key(1), CachedKind::kPacked));

  REQUIRE(bytes);
  REQUIRE((*bytes)->padding() == CachedBlock::kPadding);
  const std::byte* const behind = (*bytes)->view().data() + 1000;
  REQUIRE(std::all_of(behind, behind + CachedBlock::kPadding, [](std::byte byte) { return byte == std::byte{}; }));
}

TEST_CASE("an entry that replaces another is what is there, also after a start", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder));
    put_entry(*store, 1, 2000);
    put_entry(*store, 1, 3000);
    REQUIRE(has_entry(*store, 1, 3000));
  }
  const auto again = open_store(store_in(folder));

  REQUIRE(has_entry(*again, 1, 3000));
  REQUIRE(again->extent().entries == 1);
}

TEST_CASE("an entry that was forgotten stays so after a start", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder));
    for (std::uint64_t i = 0; i < 3; ++i) put_entry(*store, i, 2000);
    store->forget(numbered_key(1), CachedKind::kPacked);
    REQUIRE_FALSE(store->find(numbered_key(1), CachedKind::kPacked));
    REQUIRE(store->tend());
  }
  const auto again = open_store(store_in(folder));

  REQUIRE(has_entry(*again, 0, 2000));
  REQUIRE_FALSE(again->find(numbered_key(1), CachedKind::kPacked));
  REQUIRE(has_entry(*again, 2, 2000));
}

TEST_CASE("the room of a large entry that was forgotten is given back at once", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  for (std::uint64_t i = 0; i < 10; ++i) put_entry(*store, i, 1 << 20);
  const std::uint64_t before = blocks_of(store_in(folder));
  for (std::uint64_t i = 0; i < 4; ++i) store->forget(numbered_key(2 * i), CachedKind::kPacked);

  REQUIRE(store->tend());

  const std::uint64_t after = blocks_of(store_in(folder));
  REQUIRE((before - after) >> 16 == 4 << 4);  // some blocks of the file system's own, at most
  REQUIRE(store->extent().taken == after);
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(has_entry(*store, 2 * i + 1, 1 << 20));
}

TEST_CASE("segments that are mostly dead small entries are emptied, and what lives is kept", "[cache]") {
  constexpr std::uint64_t kEntries = 5000;
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 32_MiB);  // segments of 1 MiB
  for (std::uint64_t i = 0; i < kEntries; ++i) put_entry(*store, i, 2000, CachedKind::kIndex);
  const std::uint64_t before = blocks_of(store_in(folder));
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    if (i % 5 != 0) store->forget(numbered_key(i), CachedKind::kIndex);
  }

  for (int i = 0; i < 3; ++i) REQUIRE(store->tend());

  REQUIRE(blocks_of(store_in(folder)) < before / 2);
  REQUIRE(store->extent().taken == blocks_of(store_in(folder)));
  const auto again = open_store(store_in(folder), 32_MiB);
  for (const auto& each : {store.get(), again.get()}) {
    REQUIRE(each->extent().entries == kEntries / 5);
    for (std::uint64_t i = 0; i < kEntries; i += 5) REQUIRE(has_entry(*each, i, 2000, CachedKind::kIndex));
  }
}

TEST_CASE("a store without entries is a folder without segments", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder));
    put_entry(*store, 1, 2000);
    store->forget(numbered_key(1), CachedKind::kPacked);
  }
  const auto store = open_store(store_in(folder));
  store->forget(numbered_key(1), CachedKind::kPacked);  // it was not written down
  REQUIRE(store->tend());

  REQUIRE(files_of(store_in(folder), "").empty());
}

TEST_CASE("the store takes no more than its bound, and the oldest entries go first", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 4_MiB);
  std::uint64_t evicted = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto written = write_entry(*store, i, 50'000);
    REQUIRE(written);
    evicted += *written;
    REQUIRE(blocks_of(store_in(folder)) <= (4_MiB).count);
  }

  REQUIRE(evicted + store->extent().entries == 300);
  REQUIRE(store->extent().entries > 50);
  for (std::uint64_t i = 0; i < 300; ++i) REQUIRE(has_entry(*store, i, 50'000) == (i >= evicted));
  REQUIRE(store->find(numbered_key(evicted), CachedKind::kPacked)->old);
  REQUIRE_FALSE(store->find(numbered_key(299), CachedKind::kPacked)->old);
}

TEST_CASE("a store that is opened with less room gives up the oldest", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder), 4_MiB);
    for (std::uint64_t i = 0; i < 70; ++i) put_entry(*store, i, 50'000);
  }
  const auto store = open_store(store_in(folder), 2_MiB);

  REQUIRE(*store->tend() > 0);

  REQUIRE(blocks_of(store_in(folder)) <= (2_MiB).count);
  REQUIRE(has_entry(*store, 69, 50'000));
}

TEST_CASE("what is larger than an entry may be, empty, or more than the bound, is not written", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 1_MiB);

  REQUIRE(*write_entry(*store, 1, 0) == 0);
  REQUIRE(*write_entry(*store, 2, kLargestStored + 1) == 0);
  REQUIRE(write_entry(*store, 3, 2 << 20).error().code == Code::kExhausted);
  REQUIRE(store->extent().entries == 0);
  put_entry(*store, 4, 500'000);  // larger than a segment
  REQUIRE(has_entry(*store, 4, 500'000));
}

TEST_CASE("a start goes on with the segment that was begun", "[cache]") {
  const TempFolder folder;
  for (std::uint64_t i = 0; i < 10; ++i) put_entry(*open_store(store_in(folder)), i, 2000);

  REQUIRE(files_of(store_in(folder), ".mrc").size() == 1);
  const auto store = open_store(store_in(folder));
  for (std::uint64_t i = 0; i < 10; ++i) REQUIRE(has_entry(*store, i, 2000));
}

TEST_CASE("the store says of every entry what its bookkeeper needs, the last use included", "[cache]") {
  const TempFolder folder;
  {
    const auto store = open_store(store_in(folder));
    for (std::uint64_t i = 0; i < 5; ++i) put_entry(*store, i, 1000 + i);
  }
  // As if it had been written in 1970, and used now.
  const std::string table = files_of(store_in(folder), ".mrt").front();
  for (off_t record = 1; record <= 5; ++record) {
    const int file = ::open(table.c_str(), O_WRONLY | O_CLOEXEC);
    const std::uint32_t long_ago = 1;
    REQUIRE(::pwrite(file, &long_ago, 4, record * static_cast<off_t>(kRecordBytes) + off_t{kUsedAt}) == 4);
    ::close(file);
  }
  {
    const auto store = open_store(store_in(folder));
    REQUIRE(has_entry(*store, 3, 1003));
    REQUIRE(store->tend());
  }
  const auto store = open_store(store_in(folder));
  std::uint64_t entries = 0;
  store->for_each([&](const DiskStore::Listed& listed) {
    const std::uint64_t number = listed.facts.contents;
    REQUIRE(listed.key == numbered_key(number));
    REQUIRE(listed.kind == CachedKind::kPacked);
    REQUIRE(listed.facts == facts_of(number));
    REQUIRE(listed.length == 1000 + number);
    REQUIRE((listed.used > 1) == (number == 3));
    ++entries;
  });
  REQUIRE(entries == 5);
}

TEST_CASE("verifying a store finds what is wrong and forgets it", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  for (std::uint64_t i = 0; i < 20; ++i) put_entry(*store, i, 5000);
  const std::string data = files_of(store_in(folder), ".mrc").front();
  std::string bytes = contents_of(data);
  bytes[3 * 5000 + 17] ^= 1;
  write_contents(data, bytes);
  std::uint64_t told = 0;

  const DiskStore::Verified verified = store->verify([&](std::uint64_t done, std::uint64_t all) {
    told = done;
    return all == 20;
  });

  REQUIRE(verified.entries == 20);
  REQUIRE(verified.wrong == 1);
  REQUIRE(told == 20);
  REQUIRE(store->extent().entries == 19);
  REQUIRE(store->verify({}).wrong == 0);
  REQUIRE(store->verify([](std::uint64_t, std::uint64_t) { return false; }).entries == 1);
}

TEST_CASE("what another daemon drops while a store is verified is not wrong", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder));
  for (std::uint64_t i = 0; i < 20; ++i) put_entry(*store, i, 5000);

  const DiskStore::Verified verified = store->verify([&](std::uint64_t, std::uint64_t) {
    for (const std::string& file : files_of(store_in(folder), ".mrc")) std::filesystem::remove(file);
    return true;
  });

  REQUIRE(verified.entries == 1);
  REQUIRE(verified.wrong == 0);
}

TEST_CASE("what is forgotten while a store is verified is not wrong", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 64_MiB, read_what_is_forgotten);
  for (std::uint64_t i = 0; i < 20; ++i) put_entry(*store, i, 5000);
  forgetful = store.get();

  const DiskStore::Verified verified = store->verify({});
  forgetful = nullptr;

  REQUIRE(store->extent().entries == 0);
  REQUIRE(verified.entries == 0);
  REQUIRE(verified.wrong == 0);
}

TEST_CASE("a store that was emptied takes nothing, and goes on", "[cache]") {
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 2_MiB);
  for (std::uint64_t i = 0; i < 20; ++i) put_entry(*store, i, 50'000);

  store->drop_all();

  REQUIRE(store->extent().entries == 0);
  REQUIRE(store->extent().taken == 0);
  REQUIRE(files_of(store_in(folder), "").empty());
  put_entry(*store, 1, 50'000);
  REQUIRE(has_entry(*store, 1, 50'000));
}

TEST_CASE("many threads find, read and forget while one writes", "[cache]") {
  constexpr std::uint64_t kEntries = 400;
  const TempFolder folder;
  const auto store = open_store(store_in(folder), 4_MiB);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> hits = 0;
  std::vector<std::thread> readers;
  for (std::uint64_t t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      for (std::uint64_t i = t; !done || hits == 0; i = (i + 7) % kEntries) {
        const auto placed = store->find(numbered_key(i), CachedKind::kIndex);
        if (!placed) continue;
        const auto bytes = store->read(*placed);
        if (bytes && !std::ranges::equal((*bytes)->view(), entry_bytes(i, 1000 + i))) std::abort();
        if (bytes) ++hits;
        if (i % 31 == t) store->forget(numbered_key(i), CachedKind::kIndex);
      }
    });
  }
  for (std::uint64_t i = 0; i < 4000; ++i) {
    static_cast<void>(write_entry(*store, i % kEntries, 1000 + i % kEntries, CachedKind::kIndex).has_value());
    if (i % 100 == 0) static_cast<void>(store->tend().has_value());
  }
  done = true;
  for (std::thread& reader : readers) reader.join();

  REQUIRE(store->verify({}).wrong == 0);
  REQUIRE(store->extent().entries <= kEntries);
}

TEST_CASE("a segment's files have names of their own, and nothing else is one", "[cache]") {
  REQUIRE(data_name(SegmentId{0xABC}) == "seg-0000000000000abc.mrc");
  REQUIRE(table_name(SegmentId{~0ULL}) == "seg-ffffffffffffffff.mrt");
  REQUIRE(read_file_name("seg-0000000000000abc.mrc")->segment == SegmentId{0xABC});
  REQUIRE(read_file_name("seg-0000000000000abc.mrt")->file == SegmentFile::kTable);
  for (const char* const other :
       {"", "seg-.mrc", "seg-0000000000000abc", "seg-0000000000000ABC.mrc", "seg-+000000000000abc.mrc",
        "seg-0000000000000abc.mrcx", "Seg-0000000000000abc.mrc", "seg-00000000000000abc.mrc"})
    REQUIRE_FALSE(read_file_name(other));
}

}  // namespace millrace
