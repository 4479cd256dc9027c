// In which state a batch is, and a session without one.
#include "daemon/pipeline/session_state.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>

#include "daemon/memory/copier.h"
#include "daemon/memory/host_arena.h"
#include "daemon/slots/slot_pool.h"
#include "tests/support/host/segment_budget.h"

namespace millrace {
namespace {

using State = SessionState;

struct UnusedOwner final : Batch::Owner {
  void unused(BatchPtr) override {}
};

constexpr std::size_t kProcessor = 0, kDevices = 1;

// A batch of four squeezed pictures that runs, and two backends: the processor and a device.
struct StateRig {
  BatchPtr running(Packing packing = Packing::kOneSize) {
    Recipe recipe{.packing = packing};
    if (packing == Packing::kOneSize) recipe.resize = ExactSize{{8, 8}};
    BatchRequest request{.samples = std::vector<SampleRequest>(4), .recipe = std::make_shared<const Recipe>(recipe)};
    auto layout = *TensorLayout::create(request.recipe, 1000);
    auto batch = std::make_shared<Batch>(session, std::move(request), std::move(layout), nullptr, around);
    batch->begin(SlotLease{}, nullptr);
    return batch;
  }

  // One that is being read waits for that backend.
  static SampleTask read(Batch& batch, std::uint32_t index, std::size_t backend) {
    EncodedImage image{EncodedBytes(100), SourceInfo{.stored = {40, 30}}, std::nullopt};
    REQUIRE(batch.lay_out(index, image.info).has_value());
    SampleTask task = batch.wait(index, std::move(image));
    batch.choose(index, backend);
    return task;
  }
  static void make(Batch& batch, const SampleTask& task) { batch.make({&task, 1}); }

  Counters counters;
  Ledger ledger{budgets_of({}, {.encoded = 1_MiB}), &counters};
  UnusedOwner owner;
  std::shared_ptr<OpenSession> session = std::make_shared<OpenSession>(
      OpenSession{.id = SessionId{1}, .parts = {.account = ledger.account({UserId{1000}, SessionId{1}})}});
  Batch::Surroundings around{
      .owner = owner, .counters = counters, .backends = 2, .limits = Limits{.sample = {.side = 1000}}, .devices = 2};
};

// A session of two slots, of which so many bytes are filled, and what it waits for.
struct WaitingRig : StateRig {
  static constexpr Bytes kSlot{16'384};

  explicit WaitingRig(Bytes filled = shm::segment_bytes(2, kSlot)) {
    REQUIRE(segment->fill_to(filled));
    slots.emplace(segment, SessionId{1}, 2, kSlot, counters);
    session->parts.slots = &*slots;
    session->parts.arena = std::make_shared<HostArena>(segment, 2, kSlot, UserId{}, copier);
  }

  State state(bool lists = false, std::span<const BatchPtr> active = {}) const {
    return state_of(*session, waiting, active, lists);
  }
  SlotLease hand_out() {
    const SlotLease lease = *slots->lease();
    slots->seal(lease, Bytes{100}, lease.offset + 128, 1);
    return lease;
  }
  void submit() {
    BatchRequest request{.samples = std::vector<SampleRequest>(4),
                         .recipe = std::make_shared<const Recipe>(Recipe{.resize = ExactSize{{8, 8}}})};
    REQUIRE(waiting.submit(std::move(request), {}).has_value());
  }

  struct NoNext final : Waiting::Next {
    void fail(const BatchPtr&, Error, Bytes) override {}
  };

  boost::asio::io_context control;
  Copier copier{control};
  SegmentBudget budget{1_MiB};
  std::shared_ptr<Segment> segment = *budget.reserve(shm::segment_bytes(2, kSlot));
  std::optional<SlotPool> slots;
  NoNext next;
  OrderCharges orders{1};
  const Placer placer{{}};
  Waiting waiting{session, {control, Limits{}, placer, around, next, orders}};
};

}  // namespace

TEST_CASE("a batch of which nothing is read waits for its turn, or for what it lacks", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  CHECK(state_of(*batch) == State::kReadTurn);
  batch->reading.waits_for = State::kReadBudget;
  CHECK(state_of(*batch) == State::kReadBudget);
  batch->reading.want = Batch::HostShortage{.pausing = true};
  CHECK(state_of(*batch) == State::kHost);
}

TEST_CASE("a batch that is read again after a pause is read, whatever comes of it", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  batch->reading.want = Batch::HostShortage{.pausing = true};
  CHECK(state_of(*batch) == State::kHost);
  batch->reading.want->pausing = false;
  CHECK(state_of(*batch) == State::kReadTurn);
  batch->take_unread(2);
  CHECK(state_of(*batch) == State::kReading);
}

TEST_CASE("a batch is read until one of its reads hangs", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  batch->take_unread(2);
  CHECK(state_of(*batch) == State::kReading);
  batch->reading.stuck = 1;
  CHECK(state_of(*batch) == State::kHost);
}

TEST_CASE("a batch's state is the furthest that some of its images are in", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  batch->take_unread(4);
  const SampleTask first = StateRig::read(*batch, 0, kDevices), second = StateRig::read(*batch, 1, kProcessor);
  CHECK(state_of(*batch) == State::kLaneTurn);
  StateRig::make(*batch, first);
  CHECK(state_of(*batch) == State::kDevice);
  StateRig::make(*batch, second);
  CHECK(state_of(*batch) == State::kMaking);
  batch->made(1);
  CHECK(state_of(*batch) == State::kDevice);
  batch->made(0);
  CHECK(state_of(*batch) == State::kReading);  // the other two
  for (const std::uint32_t index : {2U, 3U}) {
    StateRig::make(*batch, StateRig::read(*batch, index, kProcessor));
    batch->give_up(index, Error{Code::kInvalid, "broken"});
  }
  CHECK(state_of(*batch) == State::kSettling);
}

TEST_CASE("an image that its device gives back is the device's no more", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  batch->take_unread(4);
  const SampleTask task = StateRig::read(*batch, 0, kDevices);
  StateRig::make(*batch, task);
  batch->try_elsewhere(0, Error{Code::kUnavailable, "lost"});
  batch->choose(0, kProcessor);
  CHECK(state_of(*batch) == State::kLaneTurn);
  StateRig::make(*batch, task);
  CHECK(state_of(*batch) == State::kMaking);
}

TEST_CASE("a large picture waits for memory; one of a packed batch for the others' sizes", "[pipeline]") {
  StateRig rig;
  const BatchPtr batch = rig.running();
  batch->take_unread(4);
  static_cast<void>(StateRig::read(*batch, 0, kProcessor));
  batch->defer(0);
  CHECK(state_of(*batch) == State::kDecodingBudget);

  const BatchPtr packed = rig.running(Packing::kPacked);
  packed->take_unread(4);
  REQUIRE(packed->lay_out(0, SourceInfo{.stored = {40, 30}}).has_value());
  packed->defer(0, std::nullopt);
  CHECK(state_of(*packed) == State::kReading);
}

TEST_CASE("a session that has asked for nothing is idle, or its client is at a batch", "[pipeline]") {
  WaitingRig rig;
  CHECK(rig.state() == State::kIdle);
  CHECK(rig.state(true) == State::kListing);
  const SlotLease first = rig.hand_out();
  CHECK(rig.state() == State::kRequest);
  rig.hand_out();
  CHECK(rig.state() == State::kClient);
  REQUIRE(rig.slots->release(raw(first.slot), raw(first.generation)).has_value());
  CHECK(rig.state() == State::kRequest);
}

TEST_CASE("a batch without a slot waits for its client, for memory that is filled, or for a failed one", "[pipeline]") {
  WaitingRig full;
  full.hand_out();
  full.hand_out();
  full.submit();
  CHECK(full.state() == State::kClient);
  CHECK(full.state(true) == State::kClient);  // a slot would do
  const BatchPtr failed = full.running();
  failed->fail();
  CHECK(full.state(false, {&failed, 1}) == State::kSettling);
  const BatchPtr both[] = {failed, full.running()};
  CHECK(full.state(false, both) == State::kReadTurn);

  WaitingRig filling(shm::data_offset(2));
  CHECK(filling.state() == State::kIdle);
  filling.submit();
  CHECK(filling.state() == State::kFilling);
}

}  // namespace millrace
