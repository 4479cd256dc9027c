// What stages hold, alone: budgets, numbers of what is given out, large pictures in their turns.
#include <catch2/catch.hpp>
#include <memory>

#include "daemon/pipeline/byte_budget.h"
#include "daemon/pipeline/epoch_run.h"
#include "daemon/pipeline/given_out.h"
#include "daemon/pipeline/large_pictures.h"

namespace millrace {
namespace {

struct NoOwner final : Batch::Owner {
  void unused(BatchPtr) override {}
};

// Batches whose samples claim to be large.
struct Rig {
  BatchPtr batch(std::uint64_t session, Priority priority = Priority::kNormal) {
    BatchRequest request{.samples = std::vector<SampleRequest>(4),
                         .recipe = std::make_shared<const Recipe>(Recipe{.resize = ExactSize{{8, 8}}}),
                         .priority = priority};
    auto layout = *TensorLayout::create(request.recipe, 65'535);
    return std::make_shared<Batch>(std::make_shared<OpenSession>(OpenSession{
                                       .id = SessionId{session}, .parts = {.caller = std::make_shared<Caller>()}}),
                                   std::move(request), std::move(layout), nullptr, around);
  }

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
  std::shared_ptr<ByteBudget> encoded = std::make_shared<ByteBudget>(1_MiB, MetricId::encoded_in_flight, counters);
  Batch::Surroundings around{owner, counters, encoded, 1, 65'535};
  LargePictures large{80_MiB, counters};  // one of them at a time
};

constexpr std::uint32_t kLarge = 4000, kSmall = 100;  // 48 MB of pixels, and few

}  // namespace

TEST_CASE("what was charged is given back when the charge goes, however it goes", "[pipeline]") {
  Counters counters;
  ByteBudget budget(Bytes{100}, MetricId::decoding_in_use, counters);
  {
    ByteBudget::Charge first = budget.charge(Bytes{60});
    REQUIRE(budget.has_room_for(Bytes{40}));
    REQUIRE_FALSE(budget.has_room_for(Bytes{41}));
    ByteBudget::Charge moved = std::move(first);
    REQUIRE(budget.held() == Bytes{60});
    moved = budget.charge(Bytes{100});
    REQUIRE(budget.held() == Bytes{100});
    REQUIRE(budget.full());
    moved.give_back();
    moved.give_back();
    REQUIRE(budget.held() == Bytes{0});
    moved = budget.charge(Bytes{1});
  }
  REQUIRE(budget.held() == Bytes{0});
  REQUIRE(counters.stored(MetricId::decoding_in_use) == 0);
}

TEST_CASE("what is given out comes back by its number, which the next may have", "[pipeline]") {
  GivenOut<std::string> out;
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
  Rig rig;
  ByteBudget::Charge charge;

  REQUIRE(rig.large.cover(Rig::task(0, kSmall), charge));
  REQUIRE(charge.bytes() == Bytes{0});
  REQUIRE(rig.large.cover(Rig::task(1, kLarge), charge));
  const Bytes one = charge.bytes();
  REQUIRE(one > 40_MiB);
  REQUIRE(rig.large.cover(Rig::task(2, kLarge), charge));

  REQUIRE(charge.bytes() == one);
  REQUIRE(rig.counters.stored(MetricId::decoding_in_use) == static_cast<std::int64_t>(one.count));
}

TEST_CASE("large pictures that wait take turns, the urgent first, and no other goes before them", "[pipeline]") {
  Rig rig;
  ByteBudget::Charge one, more;
  REQUIRE(rig.large.cover(Rig::task(0, kLarge), one));
  REQUIRE_FALSE(rig.large.cover(Rig::task(1, kLarge), more));
  const BatchPtr patient = rig.batch(1), other = rig.batch(2), urgent = rig.batch(2, Priority::kHigh);
  for (const BatchPtr& batch : {patient, patient, other, urgent})
    rig.large.set_aside({InFlight(batch), 0, Rig::task(0, kLarge)});
  one.give_back();

  REQUIRE_FALSE(rig.large.cover(Rig::task(3, kLarge), more));  // there is room, but not for it
  REQUIRE(rig.large.cover(Rig::task(3, kSmall), more));
  std::vector<BatchPtr> turns;
  while (rig.large.next() != nullptr) {
    REQUIRE(rig.large.next_has_room());
    turns.push_back(rig.large.take_next().batch.batch());
  }

  REQUIRE(turns == std::vector<BatchPtr>{urgent, patient, other, patient});
}

TEST_CASE("pictures of a batch that nobody wants stop waiting, the one whose turn it is, too", "[pipeline]") {
  Rig rig;
  const BatchPtr unwanted = rig.batch(1), wanted = rig.batch(2);
  for (const BatchPtr& batch : {unwanted, wanted, unwanted})
    rig.large.set_aside({InFlight(batch), 0, Rig::task(0, kLarge)});
  REQUIRE(rig.large.next()->batch.batch() == unwanted);

  REQUIRE(rig.large.drop(*unwanted).size() == 2);

  REQUIRE(rig.large.next()->batch.batch() == wanted);
  REQUIRE_FALSE(unwanted->in_flight());
}

}  // namespace millrace
