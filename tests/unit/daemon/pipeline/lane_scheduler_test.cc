// Whose samples a backend gets next: users in turns, urgent batches, long jobs, what is late, what nobody wants.
#include "daemon/pipeline/turns/lane_scheduler.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "daemon/pipeline/epoch/epoch_run.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kBatchSamples = 4;
constexpr std::uint32_t kSmallSide = 100,
                        kLongSide = 6000;  // sides of pictures: microseconds of a lane, and half a second

struct UnusedBatches final : Batch::Owner {
  void unused(BatchPtr) override {}
};

struct Wanted {
  uid_t user = 1;
  Priority priority = Priority::kNormal;
  std::uint32_t side = kSmallSide;
  ImageFormat format = ImageFormat::kGif;
  std::optional<std::chrono::steady_clock::time_point> deadline{};
};

// One backend of two lanes that has room for two jobs and an urgent one; nothing behind it.
struct SchedulerRig {
  explicit SchedulerRig(Bytes decoding = 8_GiB) : ledger(budgets_of({}, {.decoding = decoding}), &counters) {
    scheduler.add_backend({.jobs = 2, .at_once = 2, .few = 4, .most = 16, .urgent = 1}, false);
    for (const uid_t user : {1U, 2U}) shares.joined(caller(user));
  }

  std::shared_ptr<const Caller> caller(uid_t user) {
    auto made = std::make_shared<Caller>();
    made->uid = user;
    return made;
  }

  // A batch all of whose samples are ready.
  BatchPtr ready(const Wanted& wanted) {
    BatchRequest request{.samples = std::vector<SampleRequest>(kBatchSamples),
                         .recipe = std::make_shared<const Recipe>(Recipe{.resize = ExactSize{{8, 8}}}),
                         .priority = wanted.priority,
                         .deadline = wanted.deadline};
    auto layout = *TensorLayout::create(request.recipe, 65'535);
    const UserId user{wanted.user};
    auto session = std::make_shared<OpenSession>(OpenSession{
        .id = SessionId{wanted.user},
        .parts = {.caller = caller(wanted.user), .account = ledger.account({user, SessionId{wanted.user}})}});
    auto batch = std::make_shared<Batch>(std::move(session), std::move(request), std::move(layout), nullptr, around);
    batch->begin({}, nullptr);
    for (const std::uint32_t index : batch->take_unread(kBatchSamples)) {
      EncodedImage image{EncodedBytes(100), SourceInfo{.format = wanted.format, .stored = {wanted.side, wanted.side}},
                         std::nullopt};
      REQUIRE(batch->lay_out(index, image.info).has_value());
      scheduler.add(0, batch, batch->wait(index, std::move(image)));
    }
    return batch;
  }

  // As a backend that takes it. The job's number.
  std::uint32_t give(LaneScheduler::Turn next) {
    next.batch.batch()->make(next.tasks);
    const std::uint32_t number = scheduler.begin(next);
    scheduler.taken(number, std::move(next));
    return number;
  }

  Counters counters;
  UnusedBatches owner;
  Ledger ledger;
  Batch::Surroundings around{owner, counters, 1, {}};
  UserShares shares;
  ControlTime time{shares, [] { return ControlTime::Clock::time_point{}; }};
  Placer placer{{Placeable{.name = "made up"}}};
  LaneScheduler scheduler{placer, ledger, shares, time};
};

std::uint32_t user_of(const LaneScheduler::Turn& next) {
  return static_cast<std::uint32_t>(raw(next.batch.batch()->owner().user));
}

}  // namespace

TEST_CASE("users take turns, and nobody gets more than the backend has room for", "[pipeline]") {
  SchedulerRig rig;
  const BatchPtr first = rig.ready({.user = 1}), again = rig.ready({.user = 1}), other = rig.ready({.user = 2});

  auto one = rig.scheduler.next(0);
  REQUIRE(one);
  CHECK(one->is_to_be_made);
  CHECK_FALSE(one->tasks.empty());
  const std::uint32_t of_one = user_of(*one);
  rig.give(*std::move(one));
  auto two = rig.scheduler.next(0);
  REQUIRE(two);
  CHECK(user_of(*two) != of_one);
  rig.give(*std::move(two));

  CHECK_FALSE(rig.scheduler.next(0));
}

TEST_CASE("an urgent batch has a place when all others are taken, and one that is not urgent has none", "[pipeline]") {
  SchedulerRig rig;
  std::vector<BatchPtr> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(rig.ready({.user = 1}));
  for (int i = 0; i < 2; ++i) rig.give(*rig.scheduler.next(0));
  REQUIRE_FALSE(rig.scheduler.next(0));

  batches.push_back(rig.ready({.user = 2, .priority = Priority::kHigh}));

  auto urgent = rig.scheduler.next(0);
  REQUIRE(urgent);
  CHECK(urgent->urgent);
  CHECK(user_of(*urgent) == 2);
  rig.give(*std::move(urgent));
  CHECK_FALSE(rig.scheduler.next(0));
}

TEST_CASE("what a backend did not take comes again", "[pipeline]") {
  SchedulerRig rig;
  const BatchPtr batch = rig.ready({});

  auto next = rig.scheduler.next(0);
  REQUIRE(next);
  std::vector<SampleTask> tasks = std::move(next->tasks);
  const std::size_t samples = tasks.size();
  const std::uint32_t number = rig.scheduler.begin(*next);
  rig.scheduler.not_taken(number, *std::move(next), std::move(tasks));

  const auto again = rig.scheduler.next(0);
  REQUIRE(again);
  CHECK(again->tasks.size() == samples);
}

TEST_CASE("one user's long pictures are on half of the lanes where others have sessions", "[pipeline]") {
  SchedulerRig rig;
  const BatchPtr large = rig.ready({.user = 1, .side = kLongSide});
  auto one = rig.scheduler.next(0);
  REQUIRE(one);
  CHECK(one->tasks.size() == 1);  // a lane has one such picture at once
  const std::uint32_t number = rig.give(*std::move(one));

  SECTION("a second one waits until the first has come back") {
    CHECK_FALSE(rig.scheduler.next(0));
    const SampleOutcome outcome{.index = 0, .decode = 300ms};
    CHECK(rig.scheduler.ended(0, number, std::span(&outcome, 1)) == large);
    CHECK(rig.scheduler.next(0));
  }
  SECTION("another user's pictures do not wait") {
    const BatchPtr small = rig.ready({.user = 2});
    const auto next = rig.scheduler.next(0);
    REQUIRE(next);
    CHECK(user_of(*next) == 2);
  }
  SECTION("and alone he has all lanes") {
    rig.shares.left(rig.caller(2));
    CHECK(rig.scheduler.next(0));
  }
}

TEST_CASE("a batch that is too late is given up when its turn comes, and says so", "[pipeline]") {
  SchedulerRig rig;
  const auto now = std::chrono::steady_clock::now();
  const BatchPtr late = rig.ready({.user = 1, .deadline = now - 1ms});
  const BatchPtr hopeless = rig.ready({.user = 2, .side = kLongSide, .deadline = now + 100ms});

  for (int i = 0; i < 2; ++i) {
    const auto next = rig.scheduler.next(0);
    REQUIRE(next);
    CHECK_FALSE(next->is_to_be_made);
    CHECK(next->tasks.size() == kBatchSamples);
    REQUIRE(next->late);
    CHECK(next->late->code == Code::kDeadline);
  }
}

TEST_CASE("a picture that found no memory has a turn of its own once there is some", "[pipeline]") {
  constexpr Wanted kLarge{.side = 4'000, .format = ImageFormat::kPng};  // 48 MB of pixels, which are soon made
  SchedulerRig rig(80_MiB);                                             // one of them at a time
  const BatchPtr first = rig.ready(kLarge),
                 second = rig.ready({.user = 2, .side = kLarge.side, .format = kLarge.format});
  auto made = rig.scheduler.next(0);
  REQUIRE(made);
  REQUIRE(made->tasks.size() == 1);
  const std::uint32_t number = rig.give(*std::move(made));

  CHECK_FALSE(rig.scheduler.next(0));  // all others are deferred
  CHECK_FALSE(rig.scheduler.next_deferred());
  const SampleOutcome outcome{.index = 0, .decode = 1ms};
  rig.scheduler.ended(0, number, std::span(&outcome, 1));

  auto deferred = rig.scheduler.next_deferred();
  REQUIRE(deferred);
  CHECK(deferred->had_to_wait);
  CHECK(deferred->is_to_be_made);
  const BatchPtr whose = deferred->batch.batch();
  SECTION("again where the backend does not take it") {
    whose->make(deferred->tasks);
    std::vector<SampleTask> tasks = std::move(deferred->tasks);
    deferred->tasks.clear();
    const std::uint32_t asked = rig.scheduler.begin(*deferred);
    whose->not_taken(tasks);
    rig.scheduler.not_taken(asked, *std::move(deferred), std::move(tasks));
    const auto again = rig.scheduler.next_deferred();
    REQUIRE(again);
    CHECK(again->batch.batch() == whose);
  }
  SECTION("and those of a batch that nobody wants go back to it") {
    const BatchPtr other = whose == first ? second : first;
    const std::vector<LaneScheduler::Turn> dropped = rig.scheduler.drop(other);
    CHECK_FALSE(dropped.empty());
    for (const LaneScheduler::Turn& turn : dropped) CHECK_FALSE(turn.is_to_be_made);
  }
}

TEST_CASE("what waits for a lost device comes back at once, whatever is at it", "[pipeline]") {
  SchedulerRig rig;
  std::vector<BatchPtr> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(rig.ready({}));
  std::size_t given = 0;
  while (auto next = rig.scheduler.next(0)) {
    given += next->tasks.size();
    rig.give(*std::move(next));
  }

  rig.placer.set_health(0, {Health::State::kLost, "fell off the bus"});

  std::size_t samples = 0;
  while (const auto next = rig.scheduler.next(0)) {
    CHECK_FALSE(next->is_to_be_made);
    CHECK_FALSE(next->late);
    samples += next->tasks.size();
  }
  CHECK(samples + given == 3 * kBatchSamples);
}

}  // namespace millrace
