// What stages hold, alone: numbers of what is given out, large pictures in their turns.
#include <catch2/catch.hpp>
#include <memory>

#include "daemon/admit/ledger.h"
#include "daemon/pipeline/epoch/epoch_run.h"
#include "daemon/pipeline/epoch/outstanding.h"
#include "daemon/pipeline/turns/large_pictures.h"

namespace millrace {
namespace {

struct NoOwner final : Batch::Owner {
  void unused(BatchPtr) override {}
};

// Batches whose samples claim to be large.
struct StagesRig {
  BatchPtr batch(std::uint64_t session, Priority priority = Priority::kNormal) {
    BatchRequest request{.samples = std::vector<SampleRequest>(4),
                         .recipe = std::make_shared<const Recipe>(Recipe{.resize = ExactSize{{8, 8}}}),
                         .priority = priority};
    auto layout = *TensorLayout::create(request.recipe, 65'535);
    auto opened = std::make_shared<OpenSession>(OpenSession{
        .id = SessionId{session}, .parts = {.caller = std::make_shared<Caller>(), .account = account(session)}});
    return std::make_shared<Batch>(std::move(opened), std::move(request), std::move(layout), nullptr, around);
  }

  std::shared_ptr<Account> account(std::uint64_t session) { return ledger.account({UserId{0}, SessionId{session}}); }

  // A square PNG of so many pixels a side.
  static SampleTask task(std::uint32_t index, std::uint32_t side) {
    SampleTask made{.index = index};
    made.image.info = {.format = ImageFormat::kPng, .stored = {side, side}};
    const auto signed_side = static_cast<std::int32_t>(side);
    made.geometry.crop = {0, 0, signed_side, signed_side};
    return made;
  }

  Counters counters;
  NoOwner owner;
  Batch::Surroundings around{owner, counters, 1, {}};
  Ledger ledger{budgets_of({}, {.decoding = 80_MiB}), &counters};  // one of them at a time
  UserShares shares;
  LargePictures large{ledger, shares};

  const LargePictures::Deferred* next() {
    const auto any = [](const LargePictures::Deferred&) { return true; };
    return large.next(any, any);
  }
};

constexpr std::uint32_t kLarge = 4000, kSmall = 100;  // 48 MB of pixels, and few

}  // namespace

TEST_CASE("what is given out comes back by its number, which the next may have", "[pipeline]") {
  Outstanding<std::string> out;
  const std::uint32_t a = out.add("a"), b = out.add("b");

  REQUIRE(out.take(a) == "a");
  const std::uint32_t c = out.add("c");

  REQUIRE(c == a);
  REQUIRE(out.size() == 2);
  REQUIRE(out.count_if([](const std::string& piece) { return piece == "b"; }) == 1);
  REQUIRE(out.take(b) == "b");
  REQUIRE(out.take(c) == "c");
  REQUIRE(out.size() == 0);
}

TEST_CASE("a job is charged for its largest picture, and for small ones not at all", "[pipeline]") {
  StagesRig rig;
  const auto account = rig.account(1);
  Charge charge;

  REQUIRE(rig.large.cover(StagesRig::task(0, kSmall), *account, charge));
  REQUIRE(charge.amount() == 0);
  REQUIRE(rig.large.cover(StagesRig::task(1, kLarge), *account, charge));
  const std::uint64_t one = charge.amount();
  REQUIRE(one > (40_MiB).count);
  REQUIRE(rig.large.cover(StagesRig::task(2, kLarge), *account, charge));

  REQUIRE(charge.amount() == one);
  REQUIRE(account->in_use(Resource::kDecoding) == one);
  REQUIRE(rig.counters.stored(MetricId::decoding_in_use) == static_cast<std::int64_t>(one));
}

TEST_CASE("what a backend takes for a large picture beside decoding it is charged, too, when it waits as well",
          "[pipeline]") {
  constexpr std::uint32_t kSide = 3200;  // more than a lane keeps, and less than all may have
  StagesRig rig;
  const auto account = rig.account(1);
  const auto batch = rig.batch(1);
  Charge without, with;
  REQUIRE(rig.large.cover(StagesRig::task(0, kSide), *account, without));
  const std::uint64_t one = without.amount();
  without = {};

  REQUIRE(rig.large.cover(StagesRig::task(0, kSide), *account, with, 5_MiB));
  REQUIRE(with.amount() == one + (5_MiB).count);
  with = {};
  rig.large.defer({InFlight(batch), 0, StagesRig::task(0, kSide), 5_MiB});

  REQUIRE(rig.next() != nullptr);
  REQUIRE(rig.large.charge_next()->amount() == one + (5_MiB).count);
}

TEST_CASE("a picture of which the tensor is kept takes no memory for decoding, however large it is", "[pipeline]") {
  StagesRig rig;
  Charge charge;
  SampleTask task = StagesRig::task(0, 3 * kLarge);  // more than the whole budget
  REQUIRE_FALSE(rig.large.check(task));
  task.image.kept = CachedForm{CachedKind::kTensor, CachedBlock::copy_of({})};

  REQUIRE(rig.large.check(task));
  REQUIRE(rig.large.cover(task, *rig.account(1), charge));
  REQUIRE(charge.amount() == 0);
}

TEST_CASE("a picture that is kept packed takes no memory for what its file would need", "[pipeline]") {
  StagesRig rig;
  Charge charge;
  SampleTask task = StagesRig::task(0, kSmall);
  task.image.info.codec = {1_GiB, 1_GiB};  // a file of many passes
  REQUIRE_FALSE(rig.large.check(task));
  task.image.kept = CachedForm{CachedKind::kPacked, CachedBlock::copy_of({})};

  REQUIRE(rig.large.check(task));
  REQUIRE(rig.large.cover(task, *rig.account(1), charge));
  REQUIRE(charge.amount() == 0);
}

TEST_CASE("large pictures that wait take turns, of each user's the urgent first, and no other goes before them",
          "[pipeline]") {
  StagesRig rig;
  const auto account = rig.account(1);
  Charge one, more;
  REQUIRE(rig.large.cover(StagesRig::task(0, kLarge), *account, one));
  REQUIRE_FALSE(rig.large.cover(StagesRig::task(1, kLarge), *account, more));
  const BatchPtr patient = rig.batch(1), other = rig.batch(2), urgent = rig.batch(2, Priority::kHigh);
  for (const BatchPtr& batch : {patient, patient, other, urgent})
    rig.large.defer({InFlight(batch), 0, StagesRig::task(0, kLarge)});
  one.refund();

  REQUIRE_FALSE(rig.large.cover(StagesRig::task(3, kLarge), *account, more));  // there is room, but not for it
  REQUIRE(rig.large.cover(StagesRig::task(3, kSmall), *account, more));
  std::vector<BatchPtr> turns;
  while (rig.next() != nullptr) {
    REQUIRE(rig.large.charge_next());
    turns.push_back(rig.large.take_next().batch.batch());
  }

  REQUIRE(turns == std::vector<BatchPtr>{urgent, patient, other, patient});
}

TEST_CASE("the picture whose turn it is waits until there is room, which its own session is charged for",
          "[pipeline]") {
  StagesRig rig;
  Charge one;
  REQUIRE(rig.large.cover(StagesRig::task(0, kLarge), *rig.account(1), one));
  const BatchPtr batch = rig.batch(2);
  rig.large.defer({InFlight(batch), 0, StagesRig::task(0, kLarge)});
  REQUIRE(rig.next() != nullptr);
  REQUIRE_FALSE(rig.large.charge_next());

  one.refund();
  const std::optional<Charge> charge = rig.large.charge_next();

  REQUIRE(charge);
  REQUIRE(batch->session().parts.account->in_use(Resource::kDecoding) == charge->amount());
  REQUIRE(rig.ledger.in_use(Resource::kDecoding) == charge->amount());
}

TEST_CASE("pictures of a batch that nobody wants stop waiting, the one whose turn it is, too", "[pipeline]") {
  StagesRig rig;
  const BatchPtr unwanted = rig.batch(1), wanted = rig.batch(2);
  for (const BatchPtr& batch : {unwanted, wanted, unwanted})
    rig.large.defer({InFlight(batch), 0, StagesRig::task(0, kLarge)});
  REQUIRE(rig.next()->batch.batch() == unwanted);

  REQUIRE(rig.large.drop(*unwanted).size() == 2);

  REQUIRE(rig.next()->batch.batch() == wanted);
  REQUIRE_FALSE(unwanted->in_flight());
}

}  // namespace millrace
