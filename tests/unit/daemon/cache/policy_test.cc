#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/daemon/cache/policy_rig.h"

namespace millrace {
namespace {

TEST_CASE("while there is room, a piece that is worth it is let in and none goes", "[cache]") {
  PolicyRig rig(8);
  const auto use = rig.use(1, 10, 5);

  rig.fill(1, 8);

  REQUIRE(rig.policy.entries() == 8);
  REQUIRE(rig.policy.used() == Bytes{8});
  REQUIRE(rig.gone.empty());
}

TEST_CASE("of a dataset larger than the cache a part stays for good", "[cache]") {
  PolicyRig rig(50);
  const auto use = rig.use(1, 200, 10);
  rig.fill(1, 50);

  for (std::uint32_t i = 50; i < 200; ++i) {
    use->reached(i);
    rig.now += 0.05;
    REQUIRE_FALSE(rig.worth(piece(member(1, i))));
    REQUIRE_FALSE(rig.admit(piece(member(1, i))));
    REQUIRE(rig.gone.empty());
  }
}

TEST_CASE("what a faster job wants goes before what a slower one wants", "[cache]") {
  PolicyRig rig(20);
  const auto slow = rig.use(1, 100, 60);
  const auto fast = rig.use(2, 100, 6);
  rig.fill(1, 20);

  for (std::uint32_t i = 0; i < 20; ++i) {
    REQUIRE(rig.worth(piece(member(2, i))));
    REQUIRE(rig.admit(piece(member(2, i))));
    REQUIRE(rig.gone.size() == 1);
  }

  REQUIRE_FALSE(rig.worth(piece(member(1, 0))));
  REQUIRE_FALSE(rig.worth(piece(member(2, 30))));
}

TEST_CASE("two jobs on a dataset make it worth twice as much", "[cache]") {
  PolicyRig rig(20);
  const auto alone = rig.use(1, 100, 10);
  const auto first = rig.use(2, 100, 10);
  rig.fill(1, 20);
  REQUIRE_FALSE(rig.worth(piece(member(2, 0))));

  const auto second = rig.use(2, 100, 10);

  REQUIRE(rig.worth(piece(member(2, 0))));
}

TEST_CASE("worth is counted by the byte", "[cache]") {
  PolicyRig rig(40);
  const auto use = rig.use(1, 100, 10);
  for (std::uint32_t i = 0; i < 10; ++i) REQUIRE(rig.admit(piece(member(1, i), 4)));

  REQUIRE_FALSE(rig.worth(piece(member(1, 50), 4)));
  REQUIRE_FALSE(rig.worth(piece(member(1, 50), 8)));
  REQUIRE(rig.admit(piece(member(1, 50), 2)));
  REQUIRE(rig.gone.size() == 1);
}

TEST_CASE("a newcomer must be worth a good deal more, so that nothing swings", "[cache]") {
  PolicyRig rig(20);
  const auto use = rig.use(1, 100, 10);
  rig.fill(1, 20);
  const auto little_faster = rig.use(2, 100, 7.5);  // worth 8 % more, its making paid
  const auto faster = rig.use(3, 100, 6);           // 35 %

  REQUIRE_FALSE(rig.worth(piece(member(2, 50))));
  REQUIRE(rig.worth(piece(member(3, 50))));
}

TEST_CASE("what takes long to make is made when the dataset was used before, or by several", "[cache]") {
  PolicyRig rig(100);
  const auto first = rig.table.begin(dataset_of(1, 50));
  first->epoch_begun(epoch_begun(50), rig.now);
  REQUIRE_FALSE(rig.worth(piece(member(1, 0))));
  REQUIRE(rig.worth(piece(member(1, 0), 1, 0.2F, 0)));

  SECTION("in the second epoch") {
    first->epoch_ended(rig.now + 1);
    first->epoch_begun(epoch_begun(50, 1), rig.now + 1);
    REQUIRE(rig.worth(piece(member(1, 0))));
  }
  SECTION("with a second session") {
    const auto second = rig.table.begin(dataset_of(1, 50));
    second->epoch_begun(epoch_begun(50), rig.now);
    REQUIRE(rig.worth(piece(member(1, 0))));
  }
}

TEST_CASE("what costs more than all its hits can save is never made", "[cache]") {
  PolicyRig rig(100);
  const auto use = rig.use(1, 50, 10);

  REQUIRE_FALSE(rig.worth(piece(member(1, 0), 1, 0.5F, 50)));
}

TEST_CASE("datasets that nobody uses go first, the longest unused first, and not before their room is wanted",
          "[cache]") {
  PolicyRig rig(30);
  for (const std::uint64_t number : {2, 1}) {
    const auto use = rig.use(number, 10, 5);
    rig.fill(number, 10);
    rig.now += 100;
  }
  rig.now += 1000;
  const auto use = rig.use(3, 100, 5);
  rig.fill(3, 10);
  REQUIRE(rig.policy.entries() == 30);

  const std::vector<Policy::Ticket> order = rig.in;
  std::vector<Policy::Ticket> went;
  for (std::uint32_t i = 10; i < 30; ++i) {
    REQUIRE(rig.admit(piece(member(3, i))));
    went.insert(went.end(), rig.gone.begin(), rig.gone.end());
  }

  // Dataset 2 came in first, 1 after it.
  REQUIRE(std::is_permutation(went.begin(), went.begin() + 10, order.begin()));
  REQUIRE(std::is_permutation(went.begin() + 10, went.end(), order.begin() + 10));
  REQUIRE_FALSE(rig.worth(piece(member(3, 30))));
}

TEST_CASE("a dataset that comes back is in use again with what is left of it", "[cache]") {
  PolicyRig rig(20);
  {
    const auto use = rig.use(1, 20, 5);
    rig.fill(1, 20);
  }
  rig.now += 100000;
  const auto other = rig.use(2, 100, 5);
  REQUIRE(rig.admit(piece(member(2, 0))));

  const auto again = rig.use(1, 20, 5);
  REQUIRE_FALSE(rig.worth(piece(member(2, 1))));
}

TEST_CASE("of what costs nothing to make, what is wanted last goes", "[cache]") {
  constexpr std::uint32_t kSamples = 40;
  PolicyRig rig(20);
  const auto first = rig.use(1, kSamples, 40);
  const auto second = rig.use(1, kSamples, 40);
  std::map<Policy::Ticket, std::uint32_t> samples;
  for (std::uint32_t i = 0; i < 20; ++i) samples[*rig.admit(piece(member(1, i), 1, 0.5F, 0))] = i;
  const EpochBegun epoch = epoch_begun(kSamples, 2);
  const auto place = [&](std::uint32_t sample) { return epoch.positions->of(sample); };
  const auto sooner = [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); };
  std::uint32_t newcomer = 20;
  for (std::uint32_t i = 20; i < kSamples; ++i) newcomer = std::min(newcomer, i, sooner);
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < 20; ++i) last = std::max(last, i, sooner);
  REQUIRE(place(newcomer) < place(last));

  REQUIRE(rig.admit(piece(member(1, newcomer), 1, 0.5F, 0)));

  REQUIRE(rig.gone.size() == 1);
  REQUIRE(samples.at(rig.gone.front()) == last);
}

TEST_CASE("of files of no dataset those that are wanted often stay", "[cache]") {
  PolicyRig rig(10);
  const auto file = [](std::uint32_t key) { return DatasetMember{DatasetNumber::kNone, key, 0}; };
  rig.asked(file(0));
  rig.now += 10;
  for (std::uint32_t key = 0; key < 10; ++key) {
    rig.asked(file(key), 6);
    REQUIRE(rig.admit(piece(file(key))));
  }

  rig.asked(file(100));
  REQUIRE_FALSE(rig.worth(piece(file(100))));
  rig.asked(file(100), 5);
  REQUIRE_FALSE(rig.worth(piece(file(100))));
  rig.asked(file(100), 6);
  REQUIRE(rig.worth(piece(file(100))));
}

TEST_CASE("files of no dataset that nobody has asked for in a while go before a dataset in use", "[cache]") {
  PolicyRig rig(10);
  const DatasetMember file{DatasetNumber::kNone, 7, 0};
  rig.asked(file, 200);
  REQUIRE(rig.admit(piece(file, 5)));
  const auto use = rig.use(1, 20, 1000);
  rig.fill(1, 5);
  REQUIRE_FALSE(rig.worth(piece(member(1, 5))));

  rig.now += 301;

  REQUIRE(rig.worth(piece(member(1, 5))));
}

TEST_CASE("an entry belongs to the dataset that was read last", "[cache]") {
  PolicyRig rig(10);
  std::optional<Policy::Ticket> shared;
  {
    const auto use = rig.use(1, 10, 5);
    shared = rig.admit(piece(member(1, 0)));
    for (std::uint32_t i = 1; i < 10; ++i) REQUIRE(rig.admit(piece(member(1, i))));
  }
  rig.now += 1000;
  const auto use = rig.use(2, 20, 5);

  rig.policy.accessed(*shared, member(2, 0));
  for (std::uint32_t i = 1; i < 10; ++i) REQUIRE(rig.admit(piece(member(2, i))));

  REQUIRE(std::count(rig.in.begin(), rig.in.end(), *shared) == 1);
  REQUIRE_FALSE(rig.worth(piece(member(2, 15))));
}

TEST_CASE("what a start finds on disk comes in while there is room, and goes as unused", "[cache]") {
  PolicyRig rig(10);
  for (std::uint32_t i = 0; i < 10; ++i)
    REQUIRE(rig.policy.found(piece({DatasetNumber{1}, DatasetMember::kNoSample, 0}), -5));
  REQUIRE_FALSE(rig.policy.found(piece({DatasetNumber{2}, DatasetMember::kNoSample, 0}), -1));

  SECTION("a dataset in use takes the room") {
    const auto use = rig.use(2, 20, 5);
    REQUIRE(rig.admit(piece(member(2, 0))));
    REQUIRE(rig.gone.size() == 1);
  }
  SECTION("but not once it is used itself, though nobody knows which samples they are") {
    const auto mine = rig.use(1, 20, 5);
    const auto use = rig.use(2, 20, 5);
    REQUIRE_FALSE(rig.worth(piece(member(2, 0))));
  }
}

TEST_CASE("what is larger than the tier is refused, and several go for one that is large", "[cache]") {
  PolicyRig rig(10);
  const auto slow = rig.use(1, 20, 1000);
  const auto fast = rig.use(2, 20, 1);
  rig.fill(1, 10);

  REQUIRE_FALSE(rig.worth(piece(member(2, 0), 11, 50)));
  REQUIRE(rig.admit(piece(member(2, 0), 7, 5)));

  REQUIRE(rig.gone.size() == 7);
  REQUIRE(rig.policy.entries() == 4);
  REQUIRE(rig.policy.used() == Bytes{10});
}

TEST_CASE("asking whether something is worth making changes nothing", "[cache]") {
  PolicyRig rig(10);
  const auto slow = rig.use(1, 20, 1000);
  const auto fast = rig.use(2, 20, 1);
  rig.fill(1, 10);

  REQUIRE(rig.worth(piece(member(2, 0), 5, 5)));
  REQUIRE(rig.policy.entries() == 10);
  REQUIRE(rig.admit(piece(member(2, 0), 10, 10)));
  REQUIRE(rig.gone.size() == 10);
}

TEST_CASE("datasets beyond those that are told apart are kept and dropped all the same", "[cache]") {
  PolicyRig rig(2000);
  for (std::uint32_t i = 1; i <= 1500; ++i) {
    rig.asked(member(i, 0), 20);
    REQUIRE(rig.admit(piece(member(i, 0), 1, 0.5F, 0)));
  }
  rig.now += 1000;

  REQUIRE(rig.policy.entries() == 1500);
  REQUIRE(rig.policy.datasets() == 1023);
  const auto use = rig.use(9999, 3000, 10);
  for (std::uint32_t i = 0; i < 3000; ++i) rig.admit(piece(member(9999, i), 1, 0.5F, 0));
  REQUIRE(rig.policy.entries() == 2000);
  REQUIRE(rig.policy.datasets() < 1023);  // some have gone
}

// Against a plain map of what is in, through every call, at random.
TEST_CASE("tickets and bytes stay true whatever is asked", "[cache]") {
  std::mt19937 random(5);
  PolicyRig rig(500);
  std::vector<std::unique_ptr<DatasetUse>> uses(4);
  std::map<Policy::Ticket, std::uint32_t> bytes;
  std::vector<Policy::Ticket> gone;
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  const auto any_member = [&] { return member(below(5), below(200)); };
  for (int step = 0; step < 6000; ++step) {
    rig.now += below(100) == 0 ? 400 : 0.1;
    const std::uint32_t what = below(20);
    if (what == 0) {
      const std::uint32_t which = below(4);
      uses[which] = below(2) == 0 ? nullptr : rig.use(which + 1, 200, 1 + below(50));
    } else if (what == 1 && !bytes.empty()) {
      rig.policy.removed(bytes.begin()->first);
      bytes.erase(bytes.begin());
    } else if (what < 5 && !bytes.empty()) {
      rig.policy.accessed(std::next(bytes.begin(), below(static_cast<std::uint32_t>(bytes.size())))->first,
                          any_member());
    } else {
      Policy::Piece some =
          piece(any_member(), 1 + below(60), 0.1F + static_cast<float>(below(10)), static_cast<float>(below(3)));
      some.kind = static_cast<CachedKind>(below(kCachedKinds));
      rig.asked(some.member);
      const bool found = what == 5;
      gone.clear();
      const auto ticket =
          found ? rig.policy.found(some, rig.now) : rig.policy.admit(some, *rig.table.forecast(), rig.now, gone);
      for (const Policy::Ticket other : gone) REQUIRE(bytes.erase(other) == 1);
      if (ticket) REQUIRE(bytes.emplace(*ticket, some.bytes).second);
      REQUIRE((ticket || gone.empty()));
    }
    std::uint64_t used = 0;
    for (const auto& [entry, size] : bytes) used += size;
    REQUIRE(rig.policy.used() == Bytes{used});
    REQUIRE(used <= 500);
    REQUIRE(rig.policy.entries() == bytes.size());
  }
}

}  // namespace
}  // namespace millrace
