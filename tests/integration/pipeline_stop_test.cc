// What a lane makes that nobody wants any more: it is given up, and others have the lane. And the pipeline's own end.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "daemon/backend/cpu/cpu_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/touch_trap.h"

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

// Where backends meet whose devices end together. Thread-safe.
class Meeting {
 public:
  explicit Meeting(std::size_t all) : missing_(all) {}
  // Waits for the others, a minute at most: whether they came.
  bool come() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return missing_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t missing_;
};

// Its device ends once the others' are ending as well.
class MeetingBackend final : public Backend {
 public:
  MeetingBackend(Meeting& meeting, std::atomic<int>& met) : meeting_(meeting), met_(met) {}
  BackendInfo info() const override { return {.name = "meeting", .device = "meeting"}; }
  QueueDepth queue_depth() const override { return {}; }
  Result<void> can_make(const SampleFacts&, const Recipe&) const override { return {}; }
  void listen(HealthListener) override {}
  [[nodiscard]] bool try_submit(DecodeJob&&) override { return false; }
  void shutdown() override { met_ += meeting_.come() ? 1 : 0; }

 private:
  Meeting& meeting_;
  std::atomic<int>& met_;
};

}  // namespace

TEST_CASE("backends are shut down side by side, so that devices that hang do not wait for each other",
          "[pipeline][integration]") {
  constexpr std::size_t kDevices = 3;
  Meeting meeting(kDevices);
  std::atomic<int> met = 0;
  boost::asio::io_context control;
  Counters counters;
  const Ledger ledger(budgets_of(SessionLimits{}, {}));
  const std::unique_ptr<Fetcher> fetcher = *Fetcher::create({.threads = 1}, counters);
  std::vector<NamedBackend> backends;
  for (std::size_t i = 0; i < kDevices; ++i)
    backends.push_back({"meeting:" + std::to_string(i), std::make_unique<MeetingBackend>(meeting, met)});

  { const Pipeline pipeline(control, *fetcher, std::move(backends), ledger, counters, {}); }

  REQUIRE(met == kDevices);
}

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
