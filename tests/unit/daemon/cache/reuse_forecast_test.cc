#include <random>
#include <set>
#include <thread>

#include "daemon/cache/policy/access_sketch.h"
#include "tests/unit/daemon/cache/policy_rig.h"

namespace millrace {
namespace {

constexpr DatasetNumber kOne{1};

// A session in its second epoch over 100 samples, at 10 a second, begun at 1000, `reached` samples ago.
struct OneSession {
  explicit OneSession(std::uint64_t reached) : now(1000 + static_cast<double>(reached) / 10) {
    use->epoch_begun(epoch_begun(100, 0), 990);
    use->reached(100);
    use->epoch_ended(1000);
    use->epoch_begun(epoch, 1000);
    use->reached(reached);
  }
  Expectation expect(std::uint32_t sample, std::uint16_t listing = 1) const {
    return table.forecast()->at(kOne, now).expect(sample, listing);
  }

  UseTable table;
  EpochBegun epoch = epoch_begun(100, 1);
  std::unique_ptr<DatasetUse> use = table.begin(dataset_of(1, 100));
  double now;
};

TEST_CASE("a sample of this epoch is wanted when its place is reached", "[cache]") {
  const OneSession session(40);

  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    const auto place = static_cast<double>(session.epoch.positions->of(sample));
    if (place < 40) continue;
    REQUIRE(session.expect(sample).wait == Approx((place - 40) / 10));
  }
}

TEST_CASE("a sample that had its turn is wanted at its place in the next epoch", "[cache]") {
  const OneSession session(40);

  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    if (session.epoch.positions->of(sample) >= 40) continue;
    REQUIRE(session.expect(sample).wait == Approx(6 + static_cast<double>(session.epoch.next->of(sample)) / 10));
  }
}

TEST_CASE("between epochs every sample waits for the next one, which comes after as long a pause as before",
          "[cache]") {
  OneSession session(100);
  session.use->epoch_ended(1010);
  session.use->epoch_begun(epoch_begun(100, 2), 1014);
  session.use->reached(100);
  session.use->epoch_ended(1024);
  session.now = 1025;
  const EpochBegun next = epoch_begun(100, 3);

  REQUIRE(session.expect(7).wait == Approx(3 + static_cast<double>(next.positions->of(7)) / 10));
  REQUIRE(session.expect(7).rate == Approx(1 / 14.0));
  session.now = 1024 + 1000;
  REQUIRE(session.expect(7).wait >= 1000);
  REQUIRE(session.expect(7).rate == Approx(1 / 1010.0));
}

TEST_CASE("the soonest of several sessions counts, and their rates add up", "[cache]") {
  OneSession session(40);
  const auto other = session.table.begin(dataset_of(1, 100));
  other->epoch_begun(epoch_begun(100, 1), session.now - 1);
  other->reached(20);

  const Expectation expected = session.expect(3);

  REQUIRE(expected.rate == Approx(0.1 + 0.2));
  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    const auto place = static_cast<double>(session.epoch.positions->of(sample));
    if (place >= 40) REQUIRE(session.expect(sample).wait == Approx(std::min((place - 40) / 10, (place - 20) / 20)));
  }
}

TEST_CASE("a rank wants its share of the epoch alone", "[cache]") {
  UseTable table;
  const auto use = table.begin(dataset_of(1, 100));
  EpochBegun epoch = epoch_begun(100, 0);
  epoch.order.rank = 1;
  epoch.order.world_size = 4;
  epoch.samples = 25;
  use->epoch_begun(epoch, 1000);
  use->reached(10);
  const auto forecast = table.forecast();
  const ReuseForecast::Moment moment = forecast->at(kOne, 1001);

  REQUIRE(moment.rate() == Approx(0.1));
  REQUIRE(moment.jobs() == Approx(0.25));
  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    const std::uint64_t place = epoch.positions->of(sample), again = epoch.next->of(sample);
    const double wait = moment.expect(sample, 1).wait;
    if (place % 4 == 1 && place / 4 >= 10) {
      REQUIRE(wait == Approx((static_cast<double>(place / 4) - 10) / 10));
    } else if (again % 4 == 1) {
      REQUIRE(wait == Approx(1.5 + static_cast<double>(again / 4) / 10));
    } else {
      REQUIRE(wait > 1.5 + 2.5);
    }
  }
}

TEST_CASE("of samples that no order names the rate alone is known", "[cache]") {
  const OneSession session(40);

  REQUIRE(session.expect(3, 2).wait == Approx(10));  // of another listing
  REQUIRE(session.expect(DatasetMember::kNoSample).wait == Approx(10));
  REQUIRE(session.expect(100).wait == Approx(10));
  REQUIRE(session.expect(3, 2).rate == Approx(0.1));
}

TEST_CASE("a dataset is in use from the first epoch of a session to the session's end", "[cache]") {
  UseTable table;
  auto use = table.begin(dataset_of(1, 100));
  REQUIRE_FALSE(table.forecast()->in_use(kOne));
  use->epoch_begun(epoch_begun(100), 5);
  const auto before = table.forecast();
  REQUIRE(before->in_use(kOne));
  use->epoch_ended(6);
  REQUIRE(table.forecast()->in_use(kOne));

  use.reset();

  REQUIRE_FALSE(table.forecast()->in_use(kOne));
  REQUIRE(before->in_use(kOne));  // as it was, for who still looks at it
  REQUIRE(before->at(kOne, 7).rate() > 0);
}

TEST_CASE("a folder that is not known is never in use", "[cache]") {
  UseTable table;
  const auto use = table.begin(dataset_of(0, 100));
  use->epoch_begun(epoch_begun(100), 5);

  REQUIRE_FALSE(table.forecast()->in_use(DatasetNumber::kNone));
}

TEST_CASE("sessions come and go while others ask", "[cache]") {
  UseTable table;
  const auto coming_and_going = [&](std::uint64_t number) {
    for (int round = 0; round < 300; ++round) {
      const auto use = table.begin(dataset_of(number, 50));
      use->epoch_begun(epoch_begun(50), round);
      for (std::uint64_t i = 0; i < 50; ++i) use->reached(i);
      use->epoch_ended(round + 1);
    }
  };
  std::thread one(coming_and_going, 1), two(coming_and_going, 2);
  double most = 0;
  for (int i = 0; i < 2000; ++i) most = std::max(most, table.forecast()->at(kOne, 1000).expect(3, 1).wait);
  one.join();
  two.join();

  REQUIRE(most > 0);
  REQUIRE_FALSE(table.forecast()->in_use(kOne));
}

TEST_CASE("a sketch never counts too few, and few too many", "[cache]") {
  AccessSketch sketch(1024);
  std::mt19937_64 random(9);
  std::vector<std::uint64_t> things(500);
  for (std::uint64_t& thing : things) thing = random();
  for (std::size_t i = 0; i < things.size(); ++i) {
    for (std::size_t times = 0; times <= i % 2; ++times) sketch.access(things[i], 1);
  }

  int too_many = 0;
  for (std::size_t i = 0; i < things.size(); ++i) {
    REQUIRE(sketch.count(things[i]) >= i % 2 + 1);
    too_many += sketch.count(things[i]) > i % 2 + 1 ? 1 : 0;
  }
  REQUIRE(too_many < 200);  // 275, were each counter counted up
}

TEST_CASE("a sketch forgets by halves, counts and seconds alike", "[cache]") {
  AccessSketch sketch(1024);
  REQUIRE(sketch.span(50) == 1.0);
  for (int i = 0; i < 200; ++i) sketch.access(77, 100);
  std::mt19937_64 random(9);
  for (int i = 0; i < 1900; ++i) sketch.access(random(), 200);

  REQUIRE(sketch.count(77) >= 100);
  REQUIRE(sketch.count(77) < 110);
  REQUIRE(sketch.span(200) == Approx(50));
}

}  // namespace
}  // namespace millrace
