#include <time.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "daemon/slots/slot_pool.h"
#include "tests/support/host/segment_budget.h"

namespace millrace {
namespace {

struct Rig {
  explicit Rig(std::uint32_t slots = 2, Bytes slot_bytes = 10'000_B)
      : segment(*budget.create(shm::segment_bytes(slots, slot_bytes))),
        pool(std::make_unique<SlotPool>(segment, SessionId{7}, slots, slot_bytes, counters)) {}

  template <class T>
  T at(std::uint64_t offset) const {
    T value{};
    std::memcpy(&value, segment->data() + offset, sizeof value);
    return value;
  }
  std::uint32_t state(std::uint32_t slot) const { return at<std::uint32_t>(64 + 64 * slot); }

  SegmentBudget budget{16_MiB};
  Counters counters;
  std::shared_ptr<Segment> segment;
  std::unique_ptr<SlotPool> pool;
};

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

TEST_CASE("a pool leases every slot once and then none", "[slots]") {
  const Rig rig(3);

  const auto first = rig.pool->lease();
  const auto second = rig.pool->lease();
  const auto third = rig.pool->lease();

  REQUIRE((first && second && third));
  REQUIRE(first->slot != second->slot);
  REQUIRE(second->slot != third->slot);
  REQUIRE(first->slot != third->slot);
  REQUIRE(rig.pool->free_slots() == 0);
  REQUIRE_FALSE(rig.pool->lease());
}

TEST_CASE("a lease is the slot's own page-aligned memory", "[slots]") {
  const Rig rig(3, 5'000_B);

  const auto lease = rig.pool->lease();

  REQUIRE(lease);
  REQUIRE(lease->memory.size() == 5'000);
  REQUIRE(lease->memory.data() == rig.segment->data() + lease->offset);
  REQUIRE(lease->offset == shm::slot_offset(3, 5'000_B, raw(lease->slot)));
  REQUIRE(reinterpret_cast<std::uintptr_t>(lease->memory.data()) % 4096 == 0);
}

TEST_CASE("a sealed slot tells the client what is in it", "[slots]") {
  const Rig rig;
  const auto lease = rig.pool->lease();
  REQUIRE(lease);
  const std::uint64_t before = now_ns();

  const std::uint64_t sealed_at = rig.pool->seal(*lease, 6'000_B, lease->offset + 6'016, 5);

  const auto header = rig.at<shm::SlotHeader>(64 + 64 * raw(lease->slot));
  REQUIRE(header.state == static_cast<std::uint32_t>(shm::SlotState::kSealed));
  REQUIRE(header.samples == 5);
  REQUIRE(header.generation == raw(lease->generation));
  REQUIRE(header.tensor_bytes == 6'000);
  REQUIRE(header.records_offset == lease->offset + 6'016);
  REQUIRE(header.sealed_at_ns == sealed_at);
  REQUIRE(sealed_at >= before);
  REQUIRE(sealed_at <= now_ns());
}

TEST_CASE("a released slot is leased again with a higher generation", "[slots]") {
  const Rig rig(1);
  const auto first = rig.pool->lease();
  REQUIRE(first);
  rig.pool->seal(*first, 10_B, first->offset + 64, 1);

  REQUIRE(rig.pool->release(raw(first->slot), raw(first->generation)));
  const auto second = rig.pool->lease();

  REQUIRE(second);
  REQUIRE(second->slot == first->slot);
  REQUIRE(raw(second->generation) == raw(first->generation) + 1);
  REQUIRE(rig.at<std::uint64_t>(64 + 8) == raw(second->generation));
  REQUIRE(rig.state(0) == static_cast<std::uint32_t>(shm::SlotState::kFilling));
}

TEST_CASE("an unsealed lease returns its slot", "[slots]") {
  const Rig rig(1);
  const auto lease = rig.pool->lease();
  REQUIRE(lease);

  rig.pool->abandon(*lease);

  REQUIRE(rig.pool->free_slots() == 1);
  REQUIRE(rig.state(0) == static_cast<std::uint32_t>(shm::SlotState::kFree));
  REQUIRE(rig.pool->lease());
}

TEST_CASE("a release that names no held tensor changes nothing", "[slots]") {
  const Rig rig(2);
  const auto sealed = rig.pool->lease();
  const auto filling = rig.pool->lease();
  REQUIRE((sealed && filling));
  rig.pool->seal(*sealed, 10_B, sealed->offset + 64, 1);
  const std::uint32_t slot = raw(sealed->slot);
  const std::uint64_t generation = raw(sealed->generation);

  const Result<void> never_was = rig.pool->release(2, 1);
  const Result<void> far_out = rig.pool->release(0xFFFFFFFF, 1);
  const Result<void> stale = rig.pool->release(slot, generation - 1);
  const Result<void> of_the_future = rig.pool->release(slot, generation + 1);
  const Result<void> being_filled = rig.pool->release(raw(filling->slot), raw(filling->generation));

  for (const auto* refused : {&never_was, &far_out, &stale, &of_the_future, &being_filled}) {
    REQUIRE_FALSE(*refused);
    REQUIRE(refused->error().code == Code::kPrecondition);
  }
  REQUIRE(rig.pool->free_slots() == 0);
  REQUIRE(rig.pool->release(slot, generation));
  REQUIRE_FALSE(rig.pool->release(slot, generation));
  REQUIRE(rig.pool->free_slots() == 1);
}

TEST_CASE("a pool's counters follow its slots and end at nothing", "[slots]") {
  Rig rig(3);
  const auto first = rig.pool->lease();
  const auto second = rig.pool->lease();
  rig.pool->seal(*first, 10_B, first->offset + 64, 1);
  rig.pool->abandon(*second);
  REQUIRE(rig.counters.stored(MetricId::slots) == 3);
  REQUIRE(rig.counters.stored(MetricId::slots_free) == 2);
  REQUIRE(rig.counters.stored(MetricId::segment_bytes) == static_cast<std::int64_t>(rig.segment->size().count));

  rig.pool.reset();

  REQUIRE(rig.counters.stored(MetricId::slots) == 0);
  REQUIRE(rig.counters.stored(MetricId::slots_free) == 0);
  REQUIRE(rig.counters.stored(MetricId::segment_bytes) == 0);
}

TEST_CASE("a lane's hold on the segment outlives the pool", "[slots]") {
  Rig rig(1);
  const auto lease = rig.pool->lease();
  REQUIRE(lease);
  const std::shared_ptr<Segment> held = rig.pool->segment();

  rig.pool.reset();
  rig.segment.reset();
  lease->memory[0] = std::byte{1};

  REQUIRE(rig.budget.used() == held->size());
}

// Of a segment that is being filled: three slots, of which one is.
struct FillingRig {
  FillingRig() {
    REQUIRE(segment->fill_to(shm::data_offset(3) + 16'384_B));  // slots of 12,288
    pool = std::make_unique<SlotPool>(segment, SessionId{7}, 3, 10'000_B, counters);
  }

  SegmentBudget budget{16_MiB};
  Counters counters;
  std::shared_ptr<Segment> segment = *budget.reserve(shm::segment_bytes(3, 10'000_B));
  std::unique_ptr<SlotPool> pool;
};

TEST_CASE("only slots that are filled are leased, each as soon as it is", "[slots]") {
  FillingRig rig;

  const auto first = rig.pool->lease();
  const auto none = rig.pool->lease();

  REQUIRE(first);
  REQUIRE(raw(first->slot) == 0);
  REQUIRE_FALSE(none);
  REQUIRE(rig.pool->slots() == 3);
  REQUIRE(rig.pool->slots_not_ready() == 2);
  REQUIRE(rig.counters.stored(MetricId::slots_free) == 0);
  REQUIRE(rig.segment->fill_to(rig.segment->size()));
  rig.pool->ready_to(2);
  rig.pool->ready_to(1);  // told late
  const auto second = rig.pool->lease();
  REQUIRE(second);
  REQUIRE(raw(second->slot) == 1);
  REQUIRE(second->offset == shm::slot_offset(3, 10'000_B, 1));
  REQUIRE_FALSE(rig.pool->lease());
  REQUIRE(rig.pool->slots_not_ready() == 1);
}

TEST_CASE("a slot that was used before goes before one that was not", "[slots]") {
  FillingRig rig;
  const auto first = rig.pool->lease();
  rig.pool->abandon(*first);

  rig.pool->ready_to(3);

  REQUIRE(raw(rig.pool->lease()->slot) == 0);
}

TEST_CASE("slots that are withdrawn are none any more, and those there are go on", "[slots]") {
  FillingRig rig;
  const auto lease = rig.pool->lease();
  REQUIRE(lease);

  rig.pool->withdraw_rest(Error{Code::kExhausted, "/dev/shm is full"});

  REQUIRE(rig.pool->slots() == 1);
  REQUIRE(rig.pool->slots_not_ready() == 0);
  REQUIRE(rig.pool->slots_withdrawn() == 2);
  REQUIRE(rig.pool->why_withdrawn().message == "/dev/shm is full");
  REQUIRE(rig.pool->has_slots());
  REQUIRE(rig.counters.stored(MetricId::slots) == 1);
  REQUIRE(rig.counters.stored(MetricId::segment_bytes) ==
          static_cast<std::int64_t>((shm::data_offset(3) + shm::slot_stride(10'000_B)).count));
  rig.pool->seal(*lease, 10_B, lease->offset + 64, 1);
  REQUIRE(rig.pool->release(0, 1));
  REQUIRE_FALSE(rig.pool->release(1, 1));
  REQUIRE(rig.pool->lease());
  rig.pool.reset();
  REQUIRE(rig.counters.stored(MetricId::slots) == 0);
  REQUIRE(rig.counters.stored(MetricId::segment_bytes) == 0);
}

TEST_CASE("a pool without any slot left says so, and why", "[slots]") {
  SegmentBudget budget(16_MiB);
  Counters counters;
  const std::shared_ptr<Segment> segment = *budget.reserve(shm::segment_bytes(2, 1_MiB));
  REQUIRE(segment->fill_to(shm::data_offset(2)));
  SlotPool pool(segment, SessionId{7}, 2, 1_MiB, counters);
  REQUIRE(pool.has_slots());  // they may come

  pool.withdraw_rest(Error{Code::kExhausted, "/dev/shm is full"});

  REQUIRE_FALSE(pool.has_slots());
  REQUIRE(pool.has_slots().error().code == Code::kExhausted);
  REQUIRE_THAT(pool.has_slots().error().message, Catch::Contains("/dev/shm is full"));
}

}  // namespace
}  // namespace millrace
