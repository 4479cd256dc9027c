// Pictures that stand in for files: whose they are, and when they do.
#include <catch2/catch.hpp>

#include "tests/unit/daemon/cache/picture_rig.h"

namespace millrace {

TEST_CASE("a stable picture stands in for its file, unread", "[cache]") {
  CacheRig rig;
  rig.keep(image_of("abcd", kFile, true));
  FileIdentity changed = kFile;
  changed.changed = 5;

  const auto found = rig.cache.find(kFile, CacheWish{});

  REQUIRE(found);
  REQUIRE(found->kept.kind == CachedKind::kPacked);
  REQUIRE(found->info.orientation == 6);
  REQUIRE_FALSE(rig.cache.find(changed, CacheWish{}));
  REQUIRE_FALSE(rig.cache.find(kFile, {.most = CacheUse::kIndex}));
  REQUIRE_FALSE(rig.cache.find(kFile, {.most = CacheUse::kOff}));
}

TEST_CASE("a picture that is not stable stands in only for the very same bytes", "[cache]") {
  CacheRig rig;
  rig.keep(image_of("abcd", kFile, false));

  REQUIRE_FALSE(rig.cache.find(kFile, CacheWish{}));
  REQUIRE(rig.finds(image_of("abcd", kFile, false)));
  REQUIRE_FALSE(rig.finds(image_of("abce", kFile, false)));
  REQUIRE(rig.count(MetricId::cache_rejected) == 1);
  REQUIRE_FALSE(rig.finds(image_of("abcd", kFile, false)));  // it was forgotten
}

TEST_CASE("a picture becomes stable by bytes of a stable file", "[cache]") {
  CacheRig rig;
  rig.keep(image_of("abcd", kFile, false));

  REQUIRE(rig.finds(image_of("abcd", kFile, true)));

  REQUIRE(rig.cache.find(kFile, CacheWish{}));
}

TEST_CASE("what was kept of bytes that one user sent is nobody else's", "[cache]") {
  CacheRig rig;
  rig.keep(image_of("abcd", std::nullopt, false));
  EncodedImage others = image_of("abcd", std::nullopt, false);
  others.user = kUser + 1;

  REQUIRE(rig.finds(image_of("abcd", std::nullopt, false)));
  REQUIRE_FALSE(rig.finds(std::move(others)));
}

TEST_CASE("a tensor is found by what it was made with, before a packed form", "[cache]") {
  CacheRig rig;
  EncodedImage image = image_of("abcd", kFile, true);
  image.wish.tensor_of = 8;
  rig.keep(image, CachedKind::kTensor);
  rig.keep(image, CachedKind::kPacked);

  REQUIRE(rig.cache.find(kFile, {.tensor_of = 8})->kept.kind == CachedKind::kTensor);
  REQUIRE(rig.cache.find(kFile, {.tensor_of = 9})->kept.kind == CachedKind::kPacked);
  REQUIRE(rig.cache.find(kFile, {.most = CacheUse::kPacked, .tensor_of = 8})->kept.kind == CachedKind::kPacked);
}

TEST_CASE("an image is packed at its second access, or at once where that is wished for", "[cache]") {
  CacheRig rig;
  const EncodedImage image = image_of("abcd", kFile, true);
  const CacheKey key = key_of(image, rig.cache.seed());
  EncodedImage other = image_of("efgh", FileIdentity{.inode = 9}, true);
  other.wish.at_once = true;

  REQUIRE(rig.cache.advise(image, key).make == Advice::kPack);
  REQUIRE(rig.cache.advise(image, key).make == Advice::kPackNow);
  REQUIRE(rig.cache.advise(other, key_of(other, rig.cache.seed())).make == Advice::kPackNow);
  rig.cache.cannot_be_packed(key);
  REQUIRE(rig.cache.advise(image, key).make == Advice::kNothing);
}

TEST_CASE("a first access makes no seek index where the next one packs the image", "[cache]") {
  const auto makes_index = [](CacheRig& rig, DatasetNumber dataset, CacheUse most = CacheUse::kPacked) {
    EncodedImage image = image_of("abcd", kFile, true);
    image.info.format = ImageFormat::kJpeg;
    image.wish.most = most;
    image.wish.member.dataset = dataset;
    image.wish.tensor_of = most == CacheUse::kTensors ? 8 : 0;
    CacheAccess use(rig.cache, image);
    use.find();
    return use.makes_index();
  };
  constexpr DatasetNumber kDataset{7};
  CacheRig rig, of_single_requests, of_indexes, of_tensors;
  CacheRig full({.memory = 1_KiB, .disk = 0_B, .state_dir = ""}),
      of_many({.memory = 1_MiB, .disk = 0_B, .state_dir = ""});
  const EncodedImage file = image_of("abcd", std::nullopt, true);
  for (std::uint64_t i = 1; i < 20'000; ++i) of_many.cache.advise(file, {.low = i << 32U | i, .high = i});

  REQUIRE_FALSE(makes_index(rig, kDataset));
  REQUIRE(makes_index(of_single_requests, DatasetNumber::kNone));
  REQUIRE(makes_index(of_indexes, kDataset, CacheUse::kIndex));
  REQUIRE(
      makes_index(of_tensors, kDataset, CacheUse::kTensors));  // its next access decodes by it, and keeps the tensor
  REQUIRE(makes_index(full, kDataset));
  REQUIRE(makes_index(of_many, kDataset));  // the notes of first accesses are too few for it
}

TEST_CASE("where an image is not to be packed the advice says why", "[cache]") {
  const auto why = [](CacheRig& rig, ImageFormat format, CacheUse most = CacheUse::kPacked) {
    EncodedImage image = image_of("abcd", kFile, true);
    image.info.format = format;
    image.wish.most = most;
    CacheAccess use(rig.cache, image);
    use.find();
    return use.unpacked();
  };
  CacheRig rig;
  CacheRig without({.memory = 1_MiB, .disk = 0_B, .state_dir = "", .packed = false});
  CacheRig full({.memory = 1_KiB, .disk = 0_B, .state_dir = ""});

  REQUIRE(why(rig, ImageFormat::kJpeg) == WhyUnpacked::kNotSaid);
  REQUIRE(why(rig, ImageFormat::kPng) == WhyUnpacked::kNotJpeg);
  REQUIRE(why(rig, ImageFormat::kPacked) == WhyUnpacked::kIsPacked);
  REQUIRE(why(rig, ImageFormat::kPng, CacheUse::kIndex) == WhyUnpacked::kNotSaid);  // nobody wishes it
  REQUIRE(why(without, ImageFormat::kJpeg) == WhyUnpacked::kSwitchedOff);
  REQUIRE(why(full, ImageFormat::kJpeg) == WhyUnpacked::kNoRoom);
}

TEST_CASE("a tensor is kept when it is asked for the second time", "[cache]") {
  CacheRig rig;
  EncodedImage image = image_of("abcd", kFile, true);
  image.wish.tensor_of = 8;
  const CacheKey key = key_of(image, rig.cache.seed());

  REQUIRE(rig.cache.advise(image, key).make != Advice::kTensor);
  REQUIRE(rig.cache.advise(image, key).make == Advice::kTensor);
  image.wish.most = CacheUse::kIndex;
  REQUIRE(rig.cache.advise(image, key).make == Advice::kNothing);
}

TEST_CASE("nothing is made that would find no room", "[cache]") {
  CacheRig rig;
  const EncodedImage large{.bytes = EncodedBytes(2 << 20), .info = {}, .identity = kFile, .stable = true};

  REQUIRE(rig.cache.advise(large, key_of(large, rig.cache.seed())).make == Advice::kNothing);
}

TEST_CASE("what is of no use is forgotten, in the image and in the cache", "[cache]") {
  CacheRig rig;
  EncodedImage image = image_of("abcd", kFile, true);
  rig.keep(image);
  CacheAccess use(rig.cache, image);
  use.find();
  REQUIRE(image.kept);

  use.reject();

  REQUIRE_FALSE(image.kept);
  REQUIRE_FALSE(rig.cache.find(kFile, CacheWish{}));
  REQUIRE(rig.count(MetricId::cache_entries) == 0);
}

}  // namespace millrace
