#include <time.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "daemon/slots/slot_pool.h"

namespace millrace {
namespace {

struct Rig {
  explicit Rig(std::uint32_t slots = 2, Bytes slot_bytes = 10'000_B)
      : segment(*Segment::create(shm::segment_bytes(slots, slot_bytes), budget)),
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

}  // namespace
}  // namespace millrace
