// Where results go when there is a stream, and when there is none.
#include <catch2/catch.hpp>
#include <vector>

#include "daemon/publish/publisher.h"
#include "tests/support/host/segment_budget.h"

using namespace millrace;

namespace {

class KeptMessages final : public MessagePort {
 public:
  void send(v1::ServerMessage message) override { messages.push_back(std::move(message)); }
  void send_early_wake_up() override {}

  std::vector<v1::ServerMessage> messages;
};

// A session's memory of two slots.
struct Slots {
  static constexpr Bytes kSlotBytes{4'096};

  Counters counters;
  SessionStates states;
  SegmentBudget budget{1_MiB};
  SlotPool pool{*budget.create(shm::segment_bytes(2, kSlotBytes)), SessionId{1}, 2, kSlotBytes, counters};

  CompletedBatch sealed_batch() {
    const SlotLease lease = *pool.lease();
    SealedTensor tensor{
        .slot = lease.slot, .generation = lease.generation, .offset = lease.offset, .bytes = Bytes{100}, .samples = 1};
    tensor.sealed_at_ns = pool.seal(lease, tensor.bytes, lease.offset + 128, 1);
    return CompletedBatch{.id = BatchId{1}, .tensor = tensor};
  }
};

}  // namespace

TEST_CASE("results reach the stream in order, and their slot stays the client's", "[publish]") {
  Slots slots;
  KeptMessages port;
  Publisher publisher(slots.pool, slots.states);
  publisher.attach(port);

  publisher.epoch_started(EpochStreamId{1}, 2, 0, 2);
  publisher.completed(slots.sealed_batch());
  publisher.failed(FailedBatch{.id = BatchId{2}});
  publisher.epoch_ended(EpochStreamId{1});

  REQUIRE(port.messages.size() == 4);
  CHECK(port.messages[0].has_epoch_started());
  CHECK(port.messages[1].has_completed());
  CHECK(port.messages[2].has_failed());
  CHECK(port.messages[3].has_epoch_ended());
  CHECK(slots.pool.free_slots() == 1);
}

TEST_CASE("a batch that is ending is an early wake-up where somebody listens", "[publish]") {
  struct Counting final : MessagePort {
    void send(v1::ServerMessage) override {}
    void send_early_wake_up() override { ++early_wake_ups; }
    int early_wake_ups = 0;
  } port;
  Slots slots;
  Publisher publisher(slots.pool, slots.states);

  publisher.ending();
  publisher.attach(port);
  publisher.ending();

  CHECK(port.early_wake_ups == 1);
}

TEST_CASE("a batch that completes without a stream gives its slot back", "[publish]") {
  Slots slots;
  KeptMessages port;
  Publisher publisher(slots.pool, slots.states);
  publisher.attach(port);
  publisher.detach();

  publisher.completed(slots.sealed_batch());
  publisher.failed(FailedBatch{.id = BatchId{2}});

  CHECK(slots.pool.free_slots() == 2);
  CHECK(port.messages.empty());
}

TEST_CASE("a session's figures count batches, images and bad samples", "[publish]") {
  Slots slots;
  KeptMessages port;
  Publisher publisher(slots.pool, slots.states);
  publisher.attach(port);
  CompletedBatch batch = slots.sealed_batch();
  batch.failures.resize(2);

  publisher.completed(batch);
  publisher.failed(FailedBatch{.id = BatchId{2}, .failures = std::vector<SampleFailure>(3)});

  CHECK(publisher.counts().batches == 1);
  CHECK(publisher.counts().samples == 1);
  CHECK(publisher.counts().bad_samples == 5);
}
