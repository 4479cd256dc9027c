// What hits are said to save.
#include <catch2/catch.hpp>

#include "daemon/cache/cache_counts.h"

namespace millrace {
namespace {

using std::chrono::microseconds;

constexpr SourceInfo kBaseline{.format = ImageFormat::kJpeg}, kProgressive{.has = {.passes = true}},
    kPng{.format = ImageFormat::kPng};
constexpr std::uint64_t kFile = 100'000;

struct Rig {
  Counters counters;
  CacheCounts counts{counters};

  // So many first accesses that the start's values count for next to nothing.
  void first_touches(const SourceInfo& info, microseconds took) {
    for (int i = 0; i < 2'000; ++i) counts.made(info, nullptr, kFile, took);
  }
  void hit(const SourceInfo& info, microseconds took, CachedKind kind = CachedKind::kPacked) {
    counts.made(info, &kind, kFile, took);
  }
  std::int64_t saved() const { return counters.stored(MetricId::cache_saved); }
};

}  // namespace

TEST_CASE("a hit saves what files of its own kind took, whatever others took", "[cache]") {
  Rig rig;
  rig.first_touches(kBaseline, microseconds(2'000));
  rig.first_touches(kProgressive, microseconds(20'000));
  rig.first_touches(kPng, microseconds(90'000));

  rig.hit(kBaseline, microseconds(500));
  REQUIRE(rig.saved() == Approx(1'500).epsilon(0.02));
  rig.hit(kProgressive, microseconds(500), CachedKind::kTensor);
  REQUIRE(rig.saved() == Approx(1'500 + 19'500).epsilon(0.02));
}

TEST_CASE("hits before any first access, as after a restart, are reckoned by what was measured elsewhere", "[cache]") {
  Rig rig;
  rig.hit(kBaseline, microseconds(100));
  const std::int64_t baseline = rig.saved();
  REQUIRE(baseline > 0);
  REQUIRE(baseline < 10'000);  // of 100 kB
  rig.hit(kProgressive, microseconds(100));
  REQUIRE(rig.saved() - baseline > baseline);

  rig.first_touches(kBaseline, microseconds(50'000));
  const std::int64_t before = rig.saved();
  rig.hit(kBaseline, microseconds(100));
  REQUIRE(rig.saved() - before == Approx(49'900).epsilon(0.02));  // by then by what this daemon measured
}

TEST_CASE("hits that take longer than a first access are set off against the others", "[cache]") {
  Rig rig;
  rig.first_touches(kBaseline, microseconds(2'000));
  const auto a_tenth_less = [&] {
    rig.hit(kBaseline, microseconds(3'000));
    rig.hit(kBaseline, microseconds(600));
  };
  for (int i = 0; i < 100; ++i) a_tenth_less();

  REQUIRE(rig.saved() == Approx(100 * 400).margin(1'500));
}

TEST_CASE("what hits took on a busy host hides only so much of what they save later", "[cache]") {
  Rig rig;
  rig.first_touches(kBaseline, microseconds(2'000));
  for (int i = 0; i < 1'000; ++i) rig.hit(kBaseline, microseconds(102'000));
  for (int i = 0; i < 10'000; ++i) rig.hit(kBaseline, microseconds(1'000));

  REQUIRE(rig.saved() == Approx(5'000'000).epsilon(0.1));
}

TEST_CASE("a kind of hit that saves nothing takes nothing from the others", "[cache]") {
  Rig rig;
  rig.first_touches(kBaseline, microseconds(2'000));
  for (int i = 0; i < 10; ++i) rig.hit(kBaseline, microseconds(9'000), CachedKind::kIndex);
  REQUIRE(rig.saved() == 0);
  rig.hit(kBaseline, microseconds(1'000), CachedKind::kPacked);
  REQUIRE(rig.saved() == Approx(1'000).epsilon(0.05));
}

}  // namespace millrace
