// What a lane makes that nobody wants any more: it is given up, and others have the lane.
#include <algorithm>
#include <catch2/catch.hpp>

#include "daemon/backend/cpu/cpu_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/eventually.h"
#include "tests/support/touch_trap.h"

namespace millrace {
namespace {

constexpr std::uint32_t kViewSide = 64;
constexpr std::size_t kViewBytes = 3 * kViewSide * kViewSide;  // a multiple of 64: views lie one behind the other

BatchRequest one_sample(std::shared_ptr<const Recipe> recipe) {
  static const std::vector<std::byte> jpeg = make_jpeg({.pixels = make_pixels(150, 120, 3, 1)});
  BatchRequest request{.id = BatchId{1}, .recipe = std::move(recipe)};
  request.samples.push_back(
      SampleRequest{.source = InlineSource{{reinterpret_cast<const char*>(jpeg.data()), jpeg.size()}}});
  return request;
}

}  // namespace

TEST_CASE("the sample that a lane is at is given up when its batch is cancelled or its session closes",
          "[pipeline][integration]") {
  const bool closes = GENERATE(false, true);
  CAPTURE(closes);
  PipelineSetup setup{.slots = 1};
  setup.backend = *CpuBackend::create({.lanes = 1});
  PipelineFixture fixture(std::move(setup));
  CollectingSink others;
  fixture.open_another(SessionId{2}, UserId{4321}, others);
  const auto views =
      std::make_shared<const Recipe>(Recipe::of_views(std::vector<Recipe>(Recipe::kMostViews, *square(kViewSide))));
  const MutableByteView slot = fixture.slot(SlotIndex{0});
  TouchTrap trap(slot.subspan(5 * kViewBytes, kViewBytes), TouchTrap::Then::kWaits);
  REQUIRE(fixture.submit(one_sample(views)));
  REQUIRE(eventually([&] { return !trap.touched_by().empty(); }));
  REQUIRE(fixture.on_control([&] { return fixture.pipeline().submit(SessionId{2}, one_sample(square(16))); }));

  if (closes) {
    fixture.close();
  } else {
    fixture.on_control([&] { fixture.pipeline().cancel(PipelineFixture::kSession, BatchId{1}); });
    REQUIRE(fixture.sink().wait_failed().error.code == Code::kCancelled);
  }
  trap.let_go();

  REQUIRE(others.wait_completed().failures.empty());
  REQUIRE(fixture.counters().stored(MetricId::samples_completed) == 1);
  REQUIRE(fixture.counters().stored(MetricId::samples_bad) == 0);
  const auto further = slot.subspan(6 * kViewBytes, (Recipe::kMostViews - 6) * kViewBytes);
  REQUIRE(std::all_of(further.begin(), further.end(), [](std::byte byte) { return byte == std::byte{0}; }));
}

}  // namespace millrace
