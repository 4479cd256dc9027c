// Who stays in memory where epochs run over a dataset: through the cache, as a lane goes about it.
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/cache/cache_access.h"
#include "daemon/cache/image_cache.h"
#include "tests/unit/daemon/cache/policy_rig.h"

namespace millrace {
namespace {

constexpr std::size_t kFileBytes = 20'000, kPackedBytes = 24'000, kTensorBytes = 30'000;
constexpr std::uint32_t kFits = 40;  // packed forms, and somewhat more
constexpr Bytes kMemory{kFits * (kPackedBytes + CachedBlock::kPadding + 600)};

// What one epoch came to.
struct Came {
  int hits = 0, packed = 0, tensors = 0;
};

// Files of one folder, and jobs that run epochs over them.
struct StayRig {
  explicit StayRig(std::uint32_t count, bool is_stable = true) : samples(count), stable(is_stable) {}

  Counters counters;
  UseTable table;
  ImageCache cache{{.memory = kMemory, .disk = Bytes{0}, .state_dir = "", .uses = &table}, counters};
  const std::uint32_t samples;
  const bool stable;

  EncodedImage image_of(std::uint64_t folder, std::uint32_t sample, const CacheWish& wish) const {
    EncodedImage image{.bytes = EncodedBytes(kFileBytes), .info = {}, .stable = stable, .wish = wish};
    image.bytes.writable()[0] = static_cast<std::byte>(sample);
    image.info.stored = {8, 8};
    image.identity = FileIdentity{.device = folder, .inode = sample + 1, .size = kFileBytes};
    image.wish.member = member(folder, sample);
    return image;
  }

  // As fetch stage and lane do it; packs what is to be packed now, and what may be packed by a lane that is idle.
  void make(EncodedImage image, Came& came) {
    if (image.stable) {
      if (auto found = cache.find(*image.identity, image.wish)) image.kept = std::move(found->kept);
    }
    CacheAccess use(cache, image, kTensorBytes);
    use.find();
    if (image.kept) ++came.hits;
    if (!image.kept && !cache.find(use.key(), CachedKind::kIndex, image.wish.member)) {
      cache.store(use.key(), CachedKind::kIndex,
                  {.bytes = CachedBlock::copy_of(std::vector<std::byte>(300)),
                   .member = image.wish.member,
                   .savings = savings_of(CachedKind::kIndex, kFileBytes)});
    }
    if (use.advice() == Advice::kTensor) {
      ++came.tensors;
      keep(cache, image, use.key(), CachedKind::kTensor, CachedBlock::copy_of(std::vector<std::byte>(kTensorBytes)));
    } else if (use.advice() == Advice::kPackNow || (idle && use.advice() == Advice::kPack)) {
      ++came.packed;
      keep(cache, image, use.key(), CachedKind::kPacked,
           CachedBlock::copy_of(std::vector<std::byte>(kPackedBytes), CachedBlock::kPadding));
    }
  }
  Came run_epoch(DatasetUse& use, std::uint64_t folder, std::uint64_t epoch, const CacheWish& wish = {}) {
    Came came;
    EpochBegun begun = epoch_begun(samples, epoch);
    const std::shared_ptr<const EpochPositions> positions = begun.positions;
    std::vector<std::uint32_t> order(samples);
    for (std::uint32_t sample = 0; sample < samples; ++sample) order[positions->of(sample)] = sample;
    use.epoch_begun(std::move(begun), MemoryTier::seconds_now());
    for (std::uint32_t i = 0; i < samples; ++i) {
      use.reached(i + 1);
      make(image_of(folder, order[i], wish), came);
    }
    use.epoch_ended(MemoryTier::seconds_now());
    return came;
  }
  std::int64_t evicted() const { return counters.stored(MetricId::cache_evictions); }

  bool idle = false;
};

}  // namespace

TEST_CASE("of a dataset of twice the cache's size one part stays, and the rest is never made", "[cache]") {
  for (const bool stable : {true, false}) {
    StayRig rig(2 * kFits, stable);
    const auto use = rig.table.begin(dataset_of(7, rig.samples));
    std::vector<Came> came;
    for (std::uint64_t epoch = 0; epoch < 6; ++epoch) came.push_back(rig.run_epoch(*use, 7, epoch));

    REQUIRE(came[0].hits == 0);
    REQUIRE(came[1].packed >= 36);
    for (std::size_t epoch = 2; epoch < came.size(); ++epoch) {
      CAPTURE(stable, epoch);
      REQUIRE(came[epoch].hits >= 36);
      REQUIRE(came[epoch].packed <= 2);
    }
    REQUIRE(rig.evicted() <= 4);
  }
}

TEST_CASE("the same of tensors, which cost next to nothing to make", "[cache]") {
  StayRig rig(2 * kFits);
  const auto use = rig.table.begin(dataset_of(7, rig.samples));
  std::vector<Came> came;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) came.push_back(rig.run_epoch(*use, 7, epoch, {.tensor_of = 5}));

  for (std::size_t epoch = 2; epoch < came.size(); ++epoch) {
    CAPTURE(epoch, came[epoch].hits, came[epoch].tensors, came[epoch].packed, rig.evicted());
    REQUIRE(came[epoch].hits >= 36);
    REQUIRE(came[epoch].tensors <= 8);
  }
}

TEST_CASE("a dataset in use takes the room of one that nobody uses any more", "[cache]") {
  StayRig rig(kFits);
  {
    const auto use = rig.table.begin(dataset_of(7, rig.samples));
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) rig.run_epoch(*use, 7, epoch);
  }
  REQUIRE(rig.evicted() <= 2);
  const auto use = rig.table.begin(dataset_of(8, rig.samples));
  std::vector<Came> came;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) came.push_back(rig.run_epoch(*use, 8, epoch));

  REQUIRE(came[3].hits >= 36);
}

TEST_CASE("an image is packed at its first access where several jobs use the dataset", "[cache]") {
  StayRig rig(kFits / 2);
  const auto one = rig.table.begin(dataset_of(7, rig.samples));
  REQUIRE(rig.run_epoch(*one, 7, 0).packed == 0);
  StayRig shared(kFits / 2);
  const auto first = shared.table.begin(dataset_of(7, shared.samples));
  const auto second = shared.table.begin(dataset_of(7, shared.samples));
  second->epoch_begun(epoch_begun(shared.samples, 5), MemoryTier::seconds_now());

  const Came came = shared.run_epoch(*first, 7, 0);

  REQUIRE(came.packed == static_cast<int>(shared.samples));
}

TEST_CASE("what a session has packed at once takes free room alone", "[cache]") {
  StayRig rig(2 * kFits);
  const auto use = rig.table.begin(dataset_of(7, rig.samples));

  const Came came = rig.run_epoch(*use, 7, 0, {.at_once = true});

  REQUIRE(came.packed >= 36);
  REQUIRE(came.packed <= static_cast<int>(kFits));
  REQUIRE(rig.counters.stored(MetricId::cache_evictions) <= 2);
}

}  // namespace millrace
