// Whose samples go to the lanes next when several users' wait, seen by a backend that keeps its jobs.
#include <catch2/catch.hpp>

#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

TEST_CASE("a user whose images cost much gets fewer of them made, not more of the lanes", "[pipeline][integration]") {
  constexpr std::uint32_t kDear = 16, kCheap = 64;
  auto holding = std::make_unique<HoldingBackend>(1);
  HoldingBackend* const backend = holding.get();
  PipelineFixture fixture({.backend = std::move(holding)});
  CollectingSink others;
  fixture.open_another(SessionId{2}, UserId{4321}, others);
  const BatchRequest dear = batch_of(kDear, 600), cheap = batch_of(kCheap, 16);
  REQUIRE(fixture.submit(dear));
  REQUIRE(fixture.on_control([&] { return fixture.pipeline().submit(SessionId{2}, cheap); }));
  fixture.wait_until_nothing_is_read();

  const auto given = [&](const BatchRequest& request) {
    const auto all = backend->given();
    return std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.recipe == request.recipe; });
  };
  while (given(cheap) < kCheap) {
    backend->finish_all();
    fixture.on_control([] {});  // after what that posted
  }

  CHECK(given(dear) >= 1);
  CHECK(given(dear) <= kDear / 2);
}

// Two users whose samples wait for a backend of one job at a time; each as many as `count` says, of so many pixels a side.
struct TwoUsers {
  static constexpr UserId kOther{4321};

  TwoUsers(std::uint32_t lanes, std::uint32_t depth, FairWeights weights, BatchRequest own, BatchRequest others)
      : own_(std::move(own)), others_(std::move(others)) {
    auto holding = std::make_unique<HoldingBackend>(depth, lanes);
    backend = holding.get();
    PipelineSetup setup{.weights = std::move(weights),
                        .control_clock = [] { return ControlTime::Clock::time_point{}; }};
    setup.backend = std::move(holding);
    fixture.emplace(std::move(setup));
    fixture->open_another(SessionId{2}, kOther, sink);
    REQUIRE(fixture->submit(own_));
    REQUIRE(fixture->on_control([&] { return fixture->pipeline().submit(SessionId{2}, others_); }));
    fixture->wait_until_nothing_is_read();
  }

  std::int64_t own() const { return given(own_); }
  std::int64_t others() const { return given(others_); }
  void let_jobs_go() {
    backend->finish_all();
    fixture->on_control([] {});  // after what that posted
  }

  HoldingBackend* backend = nullptr;
  CollectingSink sink;
  std::optional<PipelineFixture> fixture;

 private:
  std::int64_t given(const BatchRequest& request) const {
    const auto all = backend->given();
    return std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.recipe == request.recipe; });
  }

  const BatchRequest own_, others_;
};

TEST_CASE("users of weights 1 and 3 with unlike images have lane time of 1 to 3, to a job", "[pipeline][integration]") {
  constexpr std::int64_t kOwnSide = 70, kOtherSide = 20, kMostOfAJob = 16;
  const FairWeights weights{.users = {{raw(TwoUsers::kOther), 3}}};
  TwoUsers users(4, 1, weights, batch_of(500, kOwnSide), batch_of(2'000, kOtherSide));

  while (users.own() < 400 && users.others() < 1'600) {
    users.let_jobs_go();
    const std::int64_t own = users.own() * kOwnSide * kOwnSide, others = users.others() * kOtherSide * kOtherSide;
    REQUIRE(others - 3 * own <= kMostOfAJob * kOtherSide * kOtherSide);
    REQUIRE(3 * own - others <= 3 * kMostOfAJob * kOwnSide * kOwnSide);
  }

  CHECK(users.others() >= 400);
  CHECK(users.own() >= 10);
}

TEST_CASE("weights that change while batches are under way count from then on", "[pipeline][integration]") {
  TwoUsers users(4, 1, {}, batch_of(1'000, 20), batch_of(1'000, 20));
  while (users.others() < 200) users.let_jobs_go();
  const std::int64_t own = users.own(), others = users.others();
  REQUIRE(own >= 150);
  REQUIRE(own <= 250);

  users.fixture->on_control([&] { users.fixture->pipeline().set_weights({.users = {{raw(TwoUsers::kOther), 8}}}); });
  while (users.others() < 900) users.let_jobs_go();

  CHECK(users.own() - own <= (users.others() - others) / 4);
}

TEST_CASE("an urgent batch takes nothing of another user's share", "[pipeline][integration]") {
  BatchRequest urgent = batch_of(400, 20);
  urgent.priority = Priority::kHigh;
  TwoUsers users(4, 1, {}, std::move(urgent), batch_of(400, 20));

  while (users.own() < 300) users.let_jobs_go();

  CHECK(users.others() >= 250);
}

TEST_CASE("an urgent batch that is due has a place at a backend that is full, others wait", "[pipeline][integration]") {
  auto holding = std::make_unique<HoldingBackend>(2, 2, 1);
  HoldingBackend* const backend = holding.get();
  PipelineFixture fixture({.backend = std::move(holding)});
  CollectingSink sinks[2];
  fixture.open_another(SessionId{2}, UserId{4321}, sinks[0]);
  fixture.open_another(SessionId{3}, UserId{4322}, sinks[1]);
  const BatchRequest epoch = batch_of(100, 20), normal = batch_of(1, 20);
  BatchRequest urgent = batch_of(1, 20);
  urgent.priority = Priority::kHigh;
  REQUIRE(fixture.submit(epoch));
  fixture.wait_until_nothing_is_read();
  REQUIRE(backend->jobs() == 2);

  REQUIRE(fixture.on_control([&] { return fixture.pipeline().submit(SessionId{2}, normal); }));
  fixture.wait_until_nothing_is_read();
  REQUIRE(backend->jobs() == 2);
  REQUIRE(fixture.on_control([&] { return fixture.pipeline().submit(SessionId{3}, urgent); }));
  fixture.wait_until_nothing_is_read();

  REQUIRE(backend->jobs() == 3);
  REQUIRE(backend->given().back().recipe == urgent.recipe);
}

// Files whose headers claim so many pixels that one keeps a lane for long; nobody decodes them here.
BatchRequest giants(std::uint32_t count) {
  BatchRequest request = batch_of(count, 16);
  const std::vector<std::byte> png = make_png_header(8'000, 8'000);
  for (SampleRequest& sample : request.samples)
    sample.source = InlineSource{{reinterpret_cast<const char*>(png.data()), png.size()}};
  return request;
}

TEST_CASE("one user's giants have half of the lanes at most where another user has a session",
          "[pipeline][integration]") {
  constexpr std::uint32_t kSmall = 64, kGiants = 4;
  TwoUsers users(2, 4, {}, batch_of(kSmall, 20), giants(kGiants));

  while (users.own() < kSmall || users.backend->jobs() > users.backend->large()) {
    users.backend->finish_small();
    users.fixture->on_control([] {});
    REQUIRE(users.backend->large() <= 1);
  }

  CHECK(users.backend->large() == 1);
  CHECK(users.others() == 1);
  users.backend->finish_large();
  REQUIRE(eventually([&] { return users.others() == 2; }));
}

TEST_CASE("a user who is alone has all lanes for his giants", "[pipeline][integration]") {
  auto holding = std::make_unique<HoldingBackend>(2, 2);
  HoldingBackend* const backend = holding.get();
  PipelineFixture fixture({.backend = std::move(holding)});

  REQUIRE(fixture.submit(giants(4)));

  REQUIRE(eventually([&] { return backend->large() == 2; }));
}

}  // namespace
}  // namespace millrace
