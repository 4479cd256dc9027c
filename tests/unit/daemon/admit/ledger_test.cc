#include <catch2/catch.hpp>
#include <deque>
#include <thread>
#include <vector>

#include "daemon/admit/ledger.h"

namespace millrace {
namespace {

constexpr Owner kOne{UserId{1000}, SessionId{1}};
constexpr Owner kOnesOther{UserId{1000}, SessionId{2}};
constexpr Owner kTwo{UserId{2000}, SessionId{3}};

Budgets budgets(Resource resource, Bounds bounds) {
  Budgets made;
  made[resource] = bounds;
  return made;
}

TEST_CASE("what is charged is in use until the charge goes", "[admit]") {
  Ledger ledger(budgets(Resource::kSegments, {.total = 100}));
  {
    const Result<Charge> charge = ledger.charge(Resource::kSegments, kOne, 60);
    REQUIRE(charge);
    REQUIRE(charge->amount() == 60);
    REQUIRE(ledger.in_use(Resource::kSegments) == 60);
    REQUIRE(ledger.account(kOne)->in_use(Resource::kSegments) == 60);
  }
  REQUIRE(ledger.in_use(Resource::kSegments) == 0);
}

TEST_CASE("a charge that is moved is given back once, by its last holder", "[admit]") {
  Ledger ledger{Budgets{}};
  Charge kept;
  {
    Result<Charge> charge = ledger.charge(Resource::kEncoded, kOne, 10);
    kept = *std::move(charge);
  }
  REQUIRE(ledger.in_use(Resource::kEncoded) == 10);

  kept = Charge();

  REQUIRE(ledger.in_use(Resource::kEncoded) == 0);
}

TEST_CASE("charges of one account can be put together and are given back together", "[admit]") {
  Ledger ledger{Budgets{}};
  Charge sum;
  sum.absorb(*ledger.charge(Resource::kDecoding, kOne, 10));
  sum.absorb(*ledger.charge(Resource::kDecoding, kOne, 5));
  REQUIRE(sum.amount() == 15);
  REQUIRE(ledger.in_use(Resource::kDecoding) == 15);

  sum.refund();
  sum.refund();

  REQUIRE(ledger.in_use(Resource::kDecoding) == 0);
}

TEST_CASE("a part of a charge can be given back, and the rest goes with it", "[admit]") {
  Ledger ledger{Budgets{}};
  const auto account = ledger.account(kOne);
  {
    Charge charge = account->take(Resource::kSegments, 10);

    charge.shrink_to(4);
    charge.shrink_to(4);

    REQUIRE(charge.amount() == 4);
    for (const Bound of : {Bound::kSession, Bound::kUser, Bound::kTotal})
      REQUIRE(account->in_use(Resource::kSegments, of) == 4);
  }
  for (const Bound of : {Bound::kSession, Bound::kUser, Bound::kTotal})
    REQUIRE(account->in_use(Resource::kSegments, of) == 0);
}

TEST_CASE("each bound refuses for itself: of all, of a user, of a session", "[admit]") {
  Ledger ledger(budgets(Resource::kDatasets, {.total = 5, .user = 3, .session = 2}));
  std::vector<Charge> held;
  const auto charge = [&](Owner owner) {
    Result<Charge> made = ledger.charge(Resource::kDatasets, owner, 1);
    if (made) held.push_back(*std::move(made));
    return made.has_value();
  };

  CHECK(charge(kOne));
  CHECK(charge(kOne));
  CHECK_FALSE(charge(kOne));
  CHECK(charge(kOnesOther));
  CHECK_FALSE(charge(kOnesOther));
  CHECK(charge(kTwo));
  CHECK(charge(kTwo));
  CHECK(ledger.in_use(Resource::kDatasets) == 5);
  CHECK(ledger.is_full(Resource::kDatasets));
  CHECK_FALSE(charge({UserId{3000}, SessionId{4}}));

  held.clear();
  CHECK(ledger.in_use(Resource::kDatasets) == 0);
  CHECK(charge(kOne));
}

TEST_CASE("what is refused leaves nothing in use", "[admit]") {
  Ledger ledger(budgets(Resource::kSlots, {.total = 100, .user = 100, .session = 8}));

  REQUIRE_FALSE(ledger.charge(Resource::kSlots, kOne, 9));

  REQUIRE(ledger.in_use(Resource::kSlots) == 0);
  REQUIRE(ledger.charge(Resource::kSlots, kOnesOther, 8));
}

TEST_CASE("an amount beyond 64 bits is refused and not wrapped around", "[admit]") {
  Ledger ledger(budgets(Resource::kSegments, {.total = 100}));
  const Result<Charge> held = ledger.charge(Resource::kSegments, kOne, 10);

  REQUIRE_FALSE(ledger.charge(Resource::kSegments, kOne, ~std::uint64_t{0}));
  REQUIRE_FALSE(ledger.charge(Resource::kSegments, kOne, ~std::uint64_t{0} - 5));
  REQUIRE(ledger.in_use(Resource::kSegments) == 10);
}

TEST_CASE("a user without a session has no session's bound", "[admit]") {
  Ledger ledger(budgets(Resource::kHandoffConnections, {.user = 2, .session = 1}));
  const Owner nobodys{UserId{1000}, SessionId{}};

  const Result<Charge> first = ledger.charge(Resource::kHandoffConnections, nobodys, 1);
  const Result<Charge> second = ledger.charge(Resource::kHandoffConnections, nobodys, 1);

  REQUIRE(second);
  REQUIRE_FALSE(ledger.charge(Resource::kHandoffConnections, nobodys, 1));
}

TEST_CASE("what is taken without asking counts, and fills the budget for others", "[admit]") {
  Ledger ledger(budgets(Resource::kEncoded, {.total = 100}));
  const Charge large = ledger.account(kOne)->take(Resource::kEncoded, 150);

  REQUIRE(ledger.is_full(Resource::kEncoded));
  REQUIRE_FALSE(ledger.account(kTwo)->try_charge(Resource::kEncoded, 1));
}

TEST_CASE("what is in use of a row with a gauge is shown there, however it was charged", "[admit]") {
  Counters counters;
  Ledger ledger(budgets(Resource::kEncoded, {.total = 100}), &counters);
  const auto shown = [&] { return counters.stored(MetricId::encoded_in_flight); };
  const auto account = ledger.account(kOne);
  {
    const Charge taken = account->take(Resource::kEncoded, 60);
    const Result<Charge> charged = account->charge(Resource::kEncoded, 30);
    const std::optional<Charge> refused = account->try_charge(Resource::kEncoded, 11);

    REQUIRE(charged);
    REQUIRE_FALSE(refused);
    REQUIRE(shown() == 90);
  }

  REQUIRE(shown() == 0);
}

TEST_CASE("a refusal says whose budget it is, what to do, and which setting raises it", "[admit]") {
  SessionLimits limits{.sessions = 2, .sessions_per_user = 1, .slots = 4, .queued_batches = 1, .datasets = 1};
  Ledger ledger(budgets_of(limits, {.segments = 10_MiB}));
  const auto refusal = [&](Resource resource, Owner owner, std::uint64_t amount) {
    const Result<Charge> charge = ledger.charge(resource, owner, amount);
    return charge ? "" : charge.error().message;
  };
  std::vector<Charge> held;
  for (const Resource resource : {Resource::kSessions, Resource::kQueuedBatches, Resource::kDatasets})
    held.push_back(*ledger.charge(resource, kOne, 1));

  CHECK(refusal(Resource::kSessions, kOnesOther, 1) ==
        "1 sessions of user 1000 are open: close one, or raise limits.sessions_per_user in the daemon's settings");
  held.push_back(*ledger.charge(Resource::kSessions, kTwo, 1));
  CHECK(refusal(Resource::kSessions, {UserId{3000}, SessionId{9}}, 1) ==
        "2 sessions are open: close one, or raise limits.sessions in the daemon's settings");
  CHECK(refusal(Resource::kSlots, kOne, 5) ==
        "slots: 5 asked for, a session may have 4: ask for fewer, or raise limits.slots in the daemon's settings");
  CHECK(
      refusal(Resource::kQueuedBatches, kOne, 1) ==
      "1 batches of this session wait for a slot already: release tensors, open the session with more slots, or raise "
      "limits.queued_batches in the daemon's settings");
  CHECK(refusal(Resource::kDatasets, kOne, 1) ==
        "1 datasets of this session are open: close one, or raise limits.datasets in the daemon's settings");
  CHECK(refusal(Resource::kSegments, kOne, (12_MiB).count) ==
        "the daemon's shared memory: " + to_text(12_MiB) + " asked for, 0 B of " + to_text(10_MiB) +
            " in use: use fewer or smaller slots, close sessions, or raise memory.segments in the daemon's settings");
}

TEST_CASE("where parts are kept for others, one user alone may have seven eighths, and a second one of the rest",
          "[admit]") {
  Ledger ledger(budgets(Resource::kRequests, {.total = 80, .parts = Parts::kOfFree}));
  const auto one = ledger.account(kOne), ones_other = ledger.account(kOnesOther), two = ledger.account(kTwo);

  const std::optional<Charge> most = one->try_charge(Resource::kRequests, 70);
  CHECK_FALSE(ones_other->try_charge(Resource::kRequests, 1));
  CHECK(two->try_charge(Resource::kRequests, 8));
  CHECK_FALSE(two->try_charge(Resource::kRequests, 9));
  REQUIRE(most);
  CHECK(ledger.in_use(Resource::kRequests) == 70);
}

TEST_CASE("two users who want all end up with as much, whichever of them began", "[admit]") {
  Ledger ledger(budgets(Resource::kRequests, {.total = 15'000, .parts = Parts::kOfFree}));
  const auto one = ledger.account(kOne), two = ledger.account(kTwo);
  std::deque<Charge> of_one, of_two;
  const auto want = [](Account& account, std::deque<Charge>& held) {
    while (std::optional<Charge> more = account.try_charge(Resource::kRequests, 1)) held.push_back(*std::move(more));
  };

  want(*one, of_one);
  for (int round = 0; round < 100'000; ++round) {  // each gives back what he has had longest, and asks again
    (round % 2 == 0 ? of_one : of_two).empty() ? void() : (round % 2 == 0 ? of_one : of_two).pop_front();
    want(*two, of_two);
    want(*one, of_one);
  }

  CHECK(one->in_use(Resource::kRequests) == Approx(7'000).margin(100));
  CHECK(two->in_use(Resource::kRequests) == Approx(7'000).margin(100));
}

TEST_CASE("without parts one user may have all", "[admit]") {
  Ledger ledger(budgets_of({}, {.segments = 10_MiB}));

  const Result<Charge> all = ledger.charge(Resource::kSegments, kOne, (10_MiB).count);

  REQUIRE(all);
}

TEST_CASE("a setting bounds what one user may have of memory", "[admit]") {
  Ledger ledger(budgets_of({}, {.segments = 100_MiB, .requests = 10_MiB, .user_percent = 30}));

  const Result<Charge> fits = ledger.charge(Resource::kSegments, kOne, (29_MiB).count);
  const Result<Charge> over = ledger.charge(Resource::kSegments, kOnesOther, (2_MiB).count);

  REQUIRE(fits);
  REQUIRE_FALSE(over);
  CHECK_THAT(over.error().message, Catch::Contains("of user 1000: ") && Catch::Contains("raise memory.user_percent"));
}

TEST_CASE("no user has all that is there of processes with GPU memory, or of what is kept for them", "[admit]") {
  const Resource resource = GENERATE(Resource::kExportProcesses, Resource::kExportRooms);
  Ledger ledger(budgets_of({}, {.parts = Parts::kOfFree}));
  std::vector<Charge> greedy;
  while (Result<Charge> charge = ledger.charge(resource, kOne, 1)) greedy.push_back(*std::move(charge));

  REQUIRE(greedy.size() >= 64);
  REQUIRE(ledger.charge(resource, kTwo, 1));
}

TEST_CASE("a refusal of bytes says who has how much of them, who has most first", "[admit]") {
  Ledger ledger(budgets_of({}, {.requests = 8'000'000_B, .parts = Parts::kOfFree}));
  const Result<Charge> small = ledger.charge(Resource::kRequests, kTwo, 1'000'000);
  const Result<Charge> large = ledger.charge(Resource::kRequests, kOne, 3'000'000);

  const Result<Charge> refused = ledger.charge(Resource::kRequests, kOne, 4'000'000);

  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kExhausted);
  CHECK(refused.error().message ==
        "memory for requests: 4.0 MB asked for, 4.0 MB of 8.0 MB in use (user 1000: 3.0 MB, user 2000: 1.0 MB), and "
        "the rest is kept for others but for 3.1 MB: wait until batches and epochs have ended, close datasets, send "
        "smaller requests, or raise memory.requests in the daemon's settings");
}

TEST_CASE("the room for hand-off connections follows the limits on sessions", "[admit]") {
  const Bounds connections = budgets_of({.sessions = 10, .sessions_per_user = 3})[Resource::kHandoffConnections];

  REQUIRE(connections.total == 34);
  REQUIRE(connections.user == 11);
}

TEST_CASE("charges from many threads never exceed the bound and all come back", "[admit]") {
  constexpr std::uint64_t kBound = 8;
  Ledger ledger(budgets(Resource::kDecoding, {.total = kBound, .user = 5, .session = 4}));
  std::atomic<bool> exceeded = false;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        const auto account = ledger.account({UserId{static_cast<std::uint32_t>(t % 2)}, SessionId{1 + t}});
        const std::optional<Charge> charge = account->try_charge(Resource::kDecoding, 1 + static_cast<unsigned>(i) % 4);
        if (ledger.in_use(Resource::kDecoding) > kBound) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  REQUIRE_FALSE(exceeded);
  REQUIRE(ledger.in_use(Resource::kDecoding) == 0);
}

TEST_CASE("accounts of users and sessions that are gone are forgotten", "[admit]") {
  Ledger ledger(budgets(Resource::kSessions, {.user = 1}));
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const Owner owner{UserId{static_cast<std::uint32_t>(i)}, SessionId{i}};
    REQUIRE(ledger.charge(Resource::kSessions, owner, 1));
  }

  REQUIRE(ledger.accounts() <= 64);
}

TEST_CASE("a bound that falls below what is in use takes nothing away and lets nothing more in", "[admit]") {
  Ledger ledger(budgets(Resource::kSegments, {.total = 100}));
  const auto charge = [&] { return ledger.charge(Resource::kSegments, kOne, 30); };
  std::optional<Charge> first = *charge(), second = *charge();

  ledger.set_bounds(budgets(Resource::kSegments, {.total = 50}));

  REQUIRE(ledger.in_use(Resource::kSegments) == 60);
  REQUIRE(charge().error().code == Code::kExhausted);
  REQUIRE_THAT(charge().error().message, Catch::Contains("60 B of 50 B in use"));
  second.reset();
  REQUIRE_FALSE(charge());
  first.reset();
  REQUIRE(charge());
  ledger.set_bounds(budgets(Resource::kSegments, {.total = 10}));
  REQUIRE_FALSE(charge());
}

TEST_CASE("the ledger tells who has how much, and of nobody who has nothing", "[admit]") {
  Ledger ledger{Budgets{}};
  const auto idle = ledger.account(kTwo);
  const Charge slots = *ledger.charge(Resource::kSlots, kOne, 4);
  const Charge more = *ledger.charge(Resource::kSlots, kOnesOther, 3);

  const std::vector<Ledger::UserUse> users = ledger.users();

  REQUIRE(users.size() == 1);
  REQUIRE(users[0].user == UserId{1000});
  REQUIRE(users[0].in_use[static_cast<std::size_t>(Resource::kSlots)] == 7);
  REQUIRE(users[0].in_use[static_cast<std::size_t>(Resource::kSessions)] == 0);
}

}  // namespace
}  // namespace millrace
