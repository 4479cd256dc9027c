// What is kept in memory: keys, notes of accesses, who stays and who goes.
#include <catch2/catch.hpp>
#include <vector>

#include "daemon/cache/being_made.h"
#include "daemon/cache/cache_key.h"
#include "daemon/cache/memory_tier.h"
#include "daemon/cache/policy/access_history.h"

namespace millrace {
namespace {

using enum CachedKind;

CacheKey numbered(std::uint64_t number) {
  return key_of(FileIdentity{.inode = number}, 7);
}

CachedEntry entry_of(std::size_t size, std::uint8_t fill = 1) {
  const std::vector<std::uint8_t> bytes(size, fill);
  return {.bytes = CachedBlock::copy_of(std::as_bytes(std::span(bytes)))};
}

// Of a file of 100 kB.
CachedEntry worthy_entry(CachedKind kind, std::size_t size) {
  CachedEntry entry = entry_of(size);
  entry.savings = savings_of(kind, 100'000);
  return entry;
}

// Of all changes together.
struct Sum {
  std::int64_t entries = 0, bytes = 0, evicted = 0;
  void add(const MemoryTier::Change& change) {
    for (const auto& count : change.kinds) {
      entries += count.entries;
      bytes += count.bytes;
      evicted += count.evicted;
    }
  }
};

}  // namespace

TEST_CASE("keys tell identities, parts, contents and users apart", "[cache]") {
  const FileIdentity file{1, 2, 3, 4, 5};
  const std::byte bytes[3] = {};
  FileIdentity accessed = file, part = file;
  accessed.changed = 6;
  part.part_size = 3;

  REQUIRE(key_of(file, 1) == key_of(FileIdentity{1, 2, 3, 4, 5}, 1));
  REQUIRE_FALSE(key_of(file, 1) == key_of(accessed, 1));
  REQUIRE_FALSE(key_of(file, 1) == key_of(part, 1));
  REQUIRE_FALSE(key_of(file, 1) == key_of(file, 2));
  REQUIRE(key_of(ByteView(bytes), 1000, 1) == key_of(ByteView(bytes), 1000, 1));
  REQUIRE_FALSE(key_of(ByteView(bytes), 1000, 1) == key_of(ByteView(bytes).first(2), 1000, 1));
  REQUIRE_FALSE(key_of(ByteView(bytes), 1000, 1) == key_of(ByteView(bytes), 1000, 2));
  REQUIRE_FALSE(key_of(ByteView(bytes), 1000, 1) == key_of(ByteView(bytes), 1001, 1));
  REQUIRE_FALSE(tensor_key_of(key_of(file, 1), 8) == tensor_key_of(key_of(file, 1), 9));
  REQUIRE_FALSE(tensor_key_of(key_of(file, 1), 8) == tensor_key_of(key_of(accessed, 1), 8));
}

TEST_CASE("memory keeps to its bound, and counts what goes for it", "[cache]") {
  MemoryTier memory(64_KiB);
  Sum sum;
  for (std::uint64_t i = 0; i < 500; ++i) {
    for (int access = 0; access < (i < 250 ? 1 : 4); ++access) memory.asked(numbered(i), {}, 1000);
    sum.add(memory.put(numbered(i), kIndex, worthy_entry(kIndex, 1000), 1000));
    REQUIRE(memory.bytes() <= 64_KiB);
  }

  REQUIRE(sum.entries == 52);  // all that fit
  REQUIRE(sum.bytes == static_cast<std::int64_t>(memory.bytes().count));
  REQUIRE(sum.evicted >= 52);  // those that were asked for once, for others that were asked for often
  REQUIRE_FALSE(memory.find(numbered(0), kIndex));
  REQUIRE_FALSE(memory.put(numbered(1000), kIndex, entry_of(70'000)).kept);  // larger than all of it
  const auto kept = [&](std::uint64_t i) { return memory.find(numbered(i), kIndex).has_value(); };
  for (std::uint64_t i = 250; i < 500; ++i) {
    if (!kept(i)) continue;
    sum.add(memory.forget(numbered(i), kIndex));
    REQUIRE_FALSE(kept(i));
  }
  REQUIRE(sum.entries == 0);
  REQUIRE(memory.bytes() == 0_B);
}

TEST_CASE("what replaces another counts once, and kinds of one key are apart", "[cache]") {
  MemoryTier memory(1_MiB);
  memory.put(numbered(1), kIndex, entry_of(100, 1));
  memory.put(numbered(1), kPacked, entry_of(100, 3));

  MemoryTier::Change change = memory.put(numbered(1), kIndex, entry_of(300, 2));

  REQUIRE(change.of(kIndex).entries == 0);
  REQUIRE(change.of(kIndex).bytes == 200);
  REQUIRE(memory.find(numbered(1), kIndex)->bytes->view().front() == std::byte{2});
  REQUIRE(memory.find(numbered(1), kPacked)->bytes->view().front() == std::byte{3});
}

TEST_CASE("of files of no dataset that do not all fit, one part stays", "[cache]") {
  MemoryTier memory(64_KiB);
  for (int epoch = 0; epoch < 4; ++epoch) {
    const double now = 1000 + 60 * epoch;
    int hits = 0;
    for (std::uint64_t i = 0; i < 128; ++i) {
      if (memory.find(numbered(i), kPacked, {}, Look::kFirst, now)) {
        ++hits;
        continue;
      }
      memory.asked(numbered(i), {}, now);
      memory.put(numbered(i), kPacked, worthy_entry(kPacked, 1000), now);
    }
    REQUIRE(hits == (epoch == 0 ? 0 : 52));  // all that fit
  }
}

TEST_CASE("what nobody has asked for in long makes room for others", "[cache]") {
  MemoryTier memory(64_KiB);
  for (std::uint64_t i = 0; memory.has_room_for(numbered(i), 1000); ++i) {
    memory.asked(numbered(i), {}, 1000);
    memory.put(numbered(i), kPacked, worthy_entry(kPacked, 1000), 1000);
  }
  const MemoryTier::Plan plan{.kind = kPacked, .bytes = 1000, .savings = savings_of(kPacked, 100'000)};
  REQUIRE_FALSE(memory.is_worth_making(numbered(1000), plan, 1000));
  for (int access = 0; access < 4; ++access) memory.asked(numbered(1000), {}, 2000);

  REQUIRE(memory.is_worth_making(numbered(1000), plan, 2000));
  MemoryTier::Change change = memory.put(numbered(1000), kPacked, worthy_entry(kPacked, 1000), 2000);

  REQUIRE(change.kept);
  REQUIRE(change.of(kPacked).evicted == 1);
  REQUIRE(memory.find(numbered(1000), kPacked));
  REQUIRE(memory.bytes() <= 64_KiB);
}

TEST_CASE("an index, which saves more a byte, finds room where pictures have taken all of it", "[cache]") {
  MemoryTier memory(64_KiB);
  for (std::uint64_t i = 0; memory.has_room_for(numbered(i), 16'000); ++i) {
    memory.asked(numbered(i), {}, 1000);
    memory.put(numbered(i), kTensor, worthy_entry(kTensor, 16'000), 1000);
  }
  REQUIRE_FALSE(memory.has_room_for(numbered(1000), 1000));
  memory.asked(numbered(1000), {}, 1000);

  MemoryTier::Change change = memory.put(numbered(1000), kIndex, worthy_entry(kIndex, 1000), 1000);

  REQUIRE(change.kept);
  REQUIRE(change.of(kTensor).evicted == 1);
}

TEST_CASE("all that is kept of a file shares one lock", "[cache]") {
  for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(tensor_key_of(numbered(i), 5 + i).shard() == numbered(i).shard());
}

TEST_CASE("all of a kind can be dropped", "[cache]") {
  MemoryTier memory(1_MiB);
  for (std::uint64_t i = 0; i < 50; ++i) {
    memory.put(numbered(i), kIndex, entry_of(100));
    memory.put(numbered(i), kPacked, entry_of(1000));
  }

  MemoryTier::Change change = memory.forget_all(kPacked);

  REQUIRE(change.of(kPacked).entries == -50);
  REQUIRE(change.of(kIndex).entries == 0);
  memory.forget_all();
  REQUIRE(memory.bytes() == 0_B);
}

TEST_CASE("an access is known again, and most of very many", "[cache]") {
  AccessHistory notes(1 << 16);
  for (std::uint64_t i = 0; i < 40'000; ++i) REQUIRE_FALSE(notes.seen(numbered(i)));

  int known = 0;
  for (std::uint64_t i = 0; i < 40'000; ++i) known += notes.has(numbered(i)) ? 1 : 0;

  REQUIRE(known > 39'000);
  REQUIRE(notes.seen(numbered(39'999)));
  REQUIRE_FALSE(notes.has(numbered(50'000)));
  REQUIRE_FALSE(notes.forgets());
}

TEST_CASE("notes of accesses say when there are too many of them", "[cache]") {
  AccessHistory notes(1 << 12);
  for (std::uint64_t i = 0; i < 40'000; ++i) notes.seen(numbered(i));
  REQUIRE(notes.forgets());

  notes.clear();

  REQUIRE_FALSE(notes.forgets());
}

TEST_CASE("one thing is made by one lane at a time", "[cache]") {
  BeingMade all;
  {
    const auto turn = all.begin(numbered(1));
    REQUIRE(turn);
    REQUIRE_FALSE(all.begin(numbered(1)));
    REQUIRE(all.begin(numbered(2)));
  }

  REQUIRE(all.begin(numbered(1)));
}

}  // namespace millrace
