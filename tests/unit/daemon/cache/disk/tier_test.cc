// Which of what is kept gets to disk, and what the next start finds of it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/cache/picture_rig.h"

namespace millrace {
namespace {

FileIdentity numbered_file(std::uint64_t number) {
  return {.device = 1, .inode = number, .size = 4, .modified = 3, .changed = 4};
}

// Whether a picture of this file would be made.
bool would_make(CacheRig& rig, const EncodedImage& image) {
  return rig.cache.advise(image, key_of(image, rig.cache.seed())).make != Advice::kNothing;
}

}  // namespace

TEST_CASE("pictures of stable files are there at the next start, with what is known of them", "[cache]") {
  const TempFolder folder;
  const CachedKind kind = GENERATE(CachedKind::kPacked, CachedKind::kTensor);
  EncodedImage image = image_of("abcd", kFile, true);
  image.info.format = ImageFormat::kPacked;
  image.wish.tensor_of = 11;
  CacheRig(folder).keep(image, kind);
  CacheRig rig(folder);
  REQUIRE(rig.count(MetricId::cache_disk_entries) == 1);
  REQUIRE(rig.count(MetricId::cache_disk_bytes) == 4);

  const auto found = rig.cache.find(kFile, image.wish);

  REQUIRE(found);
  REQUIRE(found->kept.kind == kind);
  REQUIRE(std::ranges::equal(found->kept.bytes->view(), image.bytes.view()));
  REQUIRE(found->info.format == ImageFormat::kPacked);
  REQUIRE(found->info.stored == Size{8, 9});
  REQUIRE(found->info.orientation == 6);
  REQUIRE(rig.cache.find(kFile, image.wish));  // from memory
  REQUIRE(rig.count(MetricId::cache_disk_hits) == 1);
  REQUIRE_FALSE(rig.cache.find(FileIdentity{.inode = 2}, image.wish));
  REQUIRE_FALSE(rig.cache.find(kFile, {.most = CacheUse::kIndex}));
}

TEST_CASE("of a file that is not stable a picture from disk stands in only for the very same bytes", "[cache]") {
  const TempFolder folder;
  CacheRig(folder).keep(image_of("abcd", kFile, true));

  REQUIRE(CacheRig(folder).finds(image_of("abcd", kFile, false)));
  REQUIRE_FALSE(CacheRig(folder).finds(image_of("abce", kFile, false)));
  REQUIRE_FALSE(CacheRig(folder).finds(image_of("abcd", kFile, false)));  // it was forgotten
}

TEST_CASE("what is not of a stable file never gets to disk", "[cache]") {
  const TempFolder folder;
  {
    CacheRig rig(folder);
    rig.keep(image_of("abcd", std::nullopt, false));
    rig.keep(image_of("abcd", kFile, false));
    rig.cache.store({1, 2}, CachedKind::kIndex,
                    {.bytes = CachedBlock::copy_of(image_of("abcd", {}, false).bytes.view())});
    REQUIRE(rig.count(MetricId::cache_entries) == 3);
  }
  REQUIRE(CacheRig(folder).count(MetricId::cache_disk_entries) == 0);
}

TEST_CASE("a picture gets to disk once it is stable", "[cache]") {
  const TempFolder folder;
  {
    CacheRig rig(folder);
    rig.keep(image_of("abcd", kFile, false));
    REQUIRE(rig.finds(image_of("abcd", kFile, true)));
  }
  REQUIRE(CacheRig(folder).cache.find(kFile, CacheWish{}));
}

TEST_CASE("a picture that memory has no room for comes from disk", "[cache]") {
  const TempFolder folder;
  CacheRig rig(folder);
  const std::string large(2 << 20, 'x');
  rig.keep(image_of(large, kFile, true));
  REQUIRE(rig.count(MetricId::cache_entries) == 0);
  REQUIRE(eventually([&] { return rig.count(MetricId::cache_disk_entries) == 1; }));

  for (int i = 1; i <= 2; ++i) {
    REQUIRE(rig.cache.find(kFile, CacheWish{}));
    REQUIRE(rig.count(MetricId::cache_disk_hits) == i);
  }
}

TEST_CASE("where memory has no room, stable files are packed for the disk alone, if it has some", "[cache]") {
  const TempFolder folder;
  CacheRig rig(folder, 1_KiB), without(folder, 1_KiB, 0_B);

  REQUIRE(would_make(rig, image_of("abcd", kFile, true)));
  REQUIRE_FALSE(would_make(rig, image_of("abcd", kFile, false)));
  REQUIRE_FALSE(would_make(without, image_of("abcd", kFile, true)));
  REQUIRE_FALSE(would_make(rig, image_of(std::string(60 << 20, 'x'), kFile, true)));
}

// Else of a dataset larger than the disk each picture would be made, written, and dropped before its next turn.
TEST_CASE("a disk from which something had to go takes nothing for its own sake until half of it is free", "[cache]") {
  constexpr std::uint64_t kEach = 100'000, kFits = 60, kTooMany = 100;  // of 8 MiB
  const TempFolder folder;
  CacheRig rig(folder, 1_KiB, 8_MiB);
  const std::string picture(kEach, 'x');
  std::uint64_t files = 0;
  const auto write_up_to = [&](std::uint64_t end) {
    while (files < end) rig.keep(image_of(picture, numbered_file(files++), true));
    REQUIRE(eventually([&] { return rig.count(MetricId::cache_disk_pending) == 0; }));
  };
  const auto takes_more = [&] { return would_make(rig, image_of(picture, kFile, true)); };
  const auto forget_all_but = [&](std::uint64_t newest) {
    for (std::uint64_t i = 0; i < files - newest; ++i)
      rig.cache.forget(key_of(numbered_file(i), rig.cache.seed()), CachedKind::kPacked);
    write_up_to(files + 1);
  };

  write_up_to(kFits);
  REQUIRE(takes_more());
  write_up_to(kFits + 12);
  REQUIRE(rig.count(MetricId::cache_disk_evictions) == 0);
  REQUIRE_FALSE(takes_more());  // the last eighth is for what waits
  write_up_to(kTooMany);
  REQUIRE(rig.count(MetricId::cache_disk_evictions) > 0);

  forget_all_but(kFits);
  REQUIRE_FALSE(takes_more());
  forget_all_but(20);
  REQUIRE(takes_more());
}

TEST_CASE("much that comes at once gets to a disk that takes a little less", "[cache]") {
  const TempFolder folder;
  const CachedBytes bytes = CachedBlock::copy_of(image_of(std::string(100'000, 'x'), {}, false).bytes.view());
  Counters counters;
  {
    ImageCache cache({.memory = 1_KiB, .disk = 8_MiB, .state_dir = folder.path()}, counters);
    for (std::uint64_t i = 0; i < 100; ++i) cache.store({i, i}, CachedKind::kIndex, {.bytes = bytes}, StoredFacts{});
  }

  REQUIRE(counters.stored(MetricId::cache_disk_entries) > 20);
}

TEST_CASE("what waits for the disk has a bound in bytes", "[cache]") {
  constexpr std::int64_t kMany = 1000;
  const TempFolder folder;
  const CachedBytes bytes = CachedBlock::copy_of(image_of(std::string(1 << 20, 'x'), {}, false).bytes.view());
  Counters counters;
  {
    ImageCache cache({.memory = 1_KiB, .disk = 4_GiB, .state_dir = folder.path()}, counters);
    for (std::uint64_t i = 0; i < kMany; ++i)  // faster than any disk
      cache.store({i, i}, CachedKind::kIndex, {.bytes = bytes}, StoredFacts{});
  }

  REQUIRE(counters.stored(MetricId::cache_disk_entries) >= 64);
  REQUIRE(counters.stored(MetricId::cache_disk_entries) <= kMany / 2);
  REQUIRE(counters.stored(MetricId::cache_disk_pending) == 0);
}

TEST_CASE("what is dropped is gone from disk and memory at once, of what waits to be written too", "[cache]") {
  const TempFolder folder;
  const EncodedImage image = image_of("abcd", kFile, true);
  CacheRig(folder).keep(image);
  {
    CacheRig start(folder);
    start.keep(image_of("efgh", FileIdentity{.device = 1, .inode = 3, .size = 4, .modified = 3, .changed = 4}, true));
    const CacheDropped dropped = *start.cache.drop({.memory = true, .disk = true});

    REQUIRE(dropped.memory.entries == 1);
    REQUIRE(dropped.memory.bytes > 4);
    REQUIRE(dropped.disk.entries >= 1);  // the second may not be written yet
    REQUIRE(dropped.disk.bytes >= 4096);
    REQUIRE(dropped.left_on_disk == 0);
    REQUIRE_FALSE(start.cache.find(kFile, image.wish));
    for (const MetricId id :
         {MetricId::cache_entries, MetricId::cache_bytes, MetricId::cache_disk_entries, MetricId::cache_disk_pending})
      REQUIRE(start.count(id) == 0);
  }
  REQUIRE(CacheRig(folder).count(MetricId::cache_disk_entries) == 0);
}

TEST_CASE("dropping one tier leaves the other, and memory forgets what was accessed", "[cache]") {
  const TempFolder folder;
  EncodedImage image = image_of("abcd", kFile, true);
  image.info.format = ImageFormat::kJpeg;
  image.wish = {.most = CacheUse::kPacked};
  CacheRig(folder).keep(image);
  CacheRig start(folder);
  const CacheKey key = key_of(image, start.cache.seed());
  EncodedImage other = image_of("efgh", FileIdentity{.device = 1, .inode = 3, .size = 4}, true);
  other.info.format = ImageFormat::kJpeg;
  other.wish = image.wish;
  const CacheKey other_key = key_of(other, start.cache.seed());
  start.cache.advise(other, other_key);
  REQUIRE(start.cache.advise(other, other_key).make == Advice::kPackNow);  // accessed again
  REQUIRE(start.cache.find(key, CachedKind::kPacked));                     // from disk, into memory
  REQUIRE(start.count(MetricId::cache_entries) == 1);

  REQUIRE(start.cache.drop({.memory = true})->disk.entries == 0);
  REQUIRE(start.count(MetricId::cache_entries) == 0);
  REQUIRE(start.count(MetricId::cache_disk_entries) == 1);
  REQUIRE(start.cache.advise(other, other_key).make == Advice::kPack);  // for the first time
  REQUIRE(start.cache.find(key, CachedKind::kPacked));

  REQUIRE(start.cache.drop({.disk = true})->memory.entries == 0);
  REQUIRE(start.count(MetricId::cache_entries) == 1);
  REQUIRE(start.count(MetricId::cache_disk_entries) == 0);
}

TEST_CASE("without a disk there is nothing to verify or drop there, and the reason is said", "[cache]") {
  const TempFolder folder;
  CacheRig start(folder, 1_MiB, 0_B);
  const auto verified = start.cache.verify({});
  const auto dropped = start.cache.drop({.disk = true});

  REQUIRE(verified.error().code == Code::kPrecondition);
  REQUIRE(verified.error().message == "nothing is kept on disk: cache.disk is 0");
  REQUIRE(dropped.error().message == verified.error().message);
  REQUIRE(start.cache.drop({.memory = true, .disk = true}));
}

}  // namespace millrace
