// A lane's samples by way of the cache.
#include <catch2/catch.hpp>

#include "daemon/backend/cpu/making/cached_maker.h"
#include "daemon/formats/probe.h"
#include "daemon/plan/draw_geometry.h"
#include "tests/support/test_images.h"

namespace millrace {
namespace {

struct Rig {
  Counters counters;
  ImageCache cache{{.memory = 16_MiB, .disk = Bytes{0}, .state_dir = ""}, counters};
  ImageWorkspace workspace{JpegPath::kFastest, {}, &cache};
  CachedMaker maker{workspace, SampleLimits{}, kernels::best_target()};
  const Recipe recipe = Recipe::evaluate(40, 32);
  KeptWish wish{.tensor_of = 5};
  std::vector<std::byte> out = std::vector<std::byte>(3 * 32 * 32);

  SampleTask task(bool with_bytes = true) {
    const std::vector<std::byte> file = make_jpeg({.pixels = make_pixels(120, 90, 3, 1)});
    EncodedBytes bytes(file.size());
    std::copy(file.begin(), file.end(), bytes.writable().begin());
    const auto info = probe_image(bytes.view(), SampleLimits{}, UseOrientation::kYes);
    REQUIRE(info.has_value());
    const auto geometry = draw_geometry(recipe, {}, *info, {}, 1000);
    REQUIRE(geometry.has_value());
    return {.index = 3,
            .image = {.bytes = with_bytes ? std::move(bytes) : EncodedBytes(),
                      .info = *info,
                      .identity = FileIdentity{.inode = 1, .size = file.size()},
                      .settled = true,
                      .wish = wish},
            .geometry = *geometry,
            .out = in_host_memory(out)};
  }
  SampleOutcome make(SampleTask task) { return maker.make(task, recipe, Fidelity::kExact); }
  std::vector<std::byte> made() {
    REQUIRE_FALSE(make(task()).error);
    return out;
  }
};

}  // namespace

TEST_CASE("the second time a tensor is kept, and copied from then on", "[backend]") {
  Rig rig;
  const std::vector<std::byte> first = rig.made();
  REQUIRE(rig.counters.stored(MetricId::cache_first_touches) == 1);
  REQUIRE(rig.made() == first);
  std::fill(rig.out.begin(), rig.out.end(), std::byte{9});

  SampleTask unread = rig.task(false);
  unread.image.kept = rig.cache.find(*unread.image.identity, unread.image.wish)->kept;
  const SampleOutcome outcome = rig.make(std::move(unread));

  REQUIRE_FALSE(outcome.error);
  REQUIRE(outcome.index == 3);
  REQUIRE(rig.out == first);
  REQUIRE(rig.counters.stored(MetricId::cache_hits) >= 1);
}

TEST_CASE("what is kept and no use is forgotten, and the image made of its bytes, or read again", "[backend]") {
  for (const KeptKind kind : {KeptKind::kTensor, KeptKind::kPacked}) {
    Rig rig;
    if (kind == KeptKind::kPacked) rig.wish.most = CacheUse::kPacked;
    const std::vector<std::byte> expected = rig.made();
    const auto wrong = [&](bool with_bytes) {
      SampleTask task = rig.task(with_bytes);
      const SampleTask whole = rig.task();
      keep(rig.cache, whole.image, key_of(whole.image, rig.cache.seed()), kind,
           KeptBlock::copy_of(std::vector<std::byte>(100), KeptBlock::kPadding));
      if (!with_bytes) task.image.kept = rig.cache.find(*task.image.identity, task.image.wish)->kept;
      return task;
    };

    const SampleOutcome with = rig.make(wrong(true));
    REQUIRE_FALSE(with.error);
    REQUIRE(rig.out == expected);
    const SampleOutcome without = rig.make(wrong(false));

    REQUIRE(without.error);
    REQUIRE(without.read_again);
    REQUIRE(rig.counters.stored(MetricId::cache_rejected) == 2);
    REQUIRE_FALSE(rig.cache.find(*rig.task().image.identity, rig.task().image.wish));
  }
}

TEST_CASE("an image is packed after it was handed over, by its second touch or where lanes are idle", "[backend]") {
  const auto packed = [](Rig& rig) {
    const SampleTask task = rig.task();
    return rig.cache.find(key_of(task.image, rig.cache.seed()), KeptKind::kPacked).has_value();
  };
  const auto no = [] { return false; };
  const auto yes = [] { return true; };
  const auto touch = [](Rig& rig) {
    SampleTask task = rig.task();
    task.image.wish.most = CacheUse::kPacked;
    REQUIRE_FALSE(rig.make(std::move(task)).error);
  };
  Rig busy, idle, stopping;

  touch(busy);
  busy.maker.finish(no, no);
  REQUIRE_FALSE(packed(busy));
  touch(busy);
  REQUIRE_FALSE(packed(busy));
  busy.maker.finish(no, no);
  REQUIRE(packed(busy));
  touch(idle);
  idle.maker.finish(yes, no);
  REQUIRE(packed(idle));
  touch(stopping);
  touch(stopping);
  stopping.maker.finish(yes, yes);
  REQUIRE_FALSE(packed(stopping));
}

}  // namespace millrace
