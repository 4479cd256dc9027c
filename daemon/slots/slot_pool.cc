#include "daemon/slots/slot_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace millrace {
namespace {

void set_state(shm::SlotHeader& header, shm::SlotState state, std::memory_order order) {
  std::atomic_ref<std::uint32_t>(header.state).store(static_cast<std::uint32_t>(state), order);
}

std::uint64_t monotonic_ns() {  // steady_clock is CLOCK_MONOTONIC in libstdc++, so clients can compare
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count());
}

}  // namespace

SlotPool::SlotPool(std::shared_ptr<Segment> segment, SessionId session, std::uint32_t slots, Bytes slot_bytes,
                   Counters& counters)
    : segment_(std::move(segment)), counters_(counters), promised_(slots), slot_bytes_(slot_bytes) {
  MILLRACE_CHECK(segment_->size() >= shm::segment_bytes(slots, slot_bytes));
  MILLRACE_CHECK(segment_->filled() >= shm::data_offset(slots));
  new (segment_->data()) shm::SegmentHeader{.magic = shm::kSegmentMagic,
                                            .version = shm::kSegmentVersion,
                                            .slots = slots,
                                            .segment_bytes = segment_->size().count,
                                            .slot_bytes = slot_bytes.count,
                                            .slot_stride = shm::slot_stride(slot_bytes).count,
                                            .data_offset = shm::data_offset(slots).count,
                                            .session_id = raw(session),
                                            .reserved = 0};
  slots_.reserve(slots);
  free_.reserve(slots);
  for (std::uint32_t slot = 0; slot < slots; ++slot) new (&header(slot)) shm::SlotHeader{};
  counters_.add(MetricId::slots, slots);
  counters_.add(MetricId::segment_bytes, bytes().count);
  ready_to(filled_slots());
}

SlotPool::~SlotPool() {
  counters_.subtract(MetricId::slots, slots());
  counters_.subtract(MetricId::slots_free, free_.size());
  counters_.subtract(MetricId::segment_bytes, bytes().count);
}

std::uint32_t SlotPool::slots() const {
  return promised_ - withdrawn_;
}

std::uint32_t SlotPool::slots_not_ready() const {
  return slots() - static_cast<std::uint32_t>(slots_.size());
}

Bytes SlotPool::bytes() const {
  return shm::data_offset(promised_) + shm::slot_stride(slot_bytes_) * slots();
}

std::uint32_t SlotPool::filled_slots() const {
  const Bytes of_slots = segment_->filled() - shm::data_offset(promised_);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(promised_, of_slots.count / shm::slot_stride(slot_bytes_).count));
}

void SlotPool::ready_to(std::uint32_t slots) {
  MILLRACE_CHECK(slots <= this->slots());
  while (slots_.size() < slots) {
    free_.insert(free_.begin(), static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    counters_.add(MetricId::slots_free);
  }
}

void SlotPool::withdraw_rest(Error why) {
  const Bytes before = bytes();
  const std::uint32_t missing = slots_not_ready();
  withdrawn_ = missing;
  no_room_ = std::move(why);
  counters_.subtract(MetricId::slots, missing);
  counters_.subtract(MetricId::segment_bytes, (before - bytes()).count);
}

Result<void> SlotPool::has_slots() const {
  if (slots() > 0) return {};
  return no_room_->within("no slot of the session could be filled");
}

std::uint32_t SlotPool::free_slots() const {
  return static_cast<std::uint32_t>(free_.size());
}

Bytes SlotPool::slot_bytes() const {
  return slot_bytes_;
}

std::optional<SlotLease> SlotPool::lease() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  counters_.subtract(MetricId::slots_free);

  const std::uint64_t generation = slots_[slot].generation + 1;
  slots_[slot] = {shm::SlotState::kFilling, generation};
  // A client that still looks at the old handle sees either of the two change, and before any new pixel.
  set_state(header(slot), shm::SlotState::kFilling, std::memory_order_relaxed);
  std::atomic_ref<std::uint64_t>(header(slot).generation).store(generation, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);

  const std::uint64_t offset = shm::slot_offset(promised_, slot_bytes_, slot);
  return SlotLease{SlotIndex{slot}, Generation{generation},
                   MutableByteView(segment_->data() + offset, slot_bytes_.count), offset};
}

std::uint64_t SlotPool::seal(const SlotLease& lease, Bytes tensor, std::uint64_t records_offset,
                             std::uint32_t samples) {
  MILLRACE_CHECK(is_filling(lease));
  slots_[raw(lease.slot)].state = shm::SlotState::kSealed;
  shm::SlotHeader& told = header(raw(lease.slot));
  told.samples = samples;
  told.tensor_bytes = tensor.count;
  told.records_offset = records_offset;
  told.sealed_at_ns = monotonic_ns();
  const std::uint64_t sealed_at = told.sealed_at_ns;
  set_state(told, shm::SlotState::kSealed, std::memory_order_release);
  return sealed_at;
}

void SlotPool::abandon(const SlotLease& lease) {
  MILLRACE_CHECK(is_filling(lease));
  set_free(raw(lease.slot));
}

Result<void> SlotPool::release(std::uint32_t slot_untrusted, std::uint64_t generation_untrusted) {
  const bool held = slot_untrusted < slots_.size() && slots_[slot_untrusted].state == shm::SlotState::kSealed &&
                    slots_[slot_untrusted].generation == generation_untrusted;
  if (!held)
    return Error{Code::kPrecondition,
                 "slot " + std::to_string(slot_untrusted) + ", generation " + std::to_string(generation_untrusted) +
                     ": holds no tensor of this session (released already, or the handle is of an earlier batch)"};
  set_free(slot_untrusted);
  return {};
}

shm::SlotHeader& SlotPool::header(std::uint32_t slot) {
  std::byte* const first = segment_->data() + sizeof(shm::SegmentHeader);
  return *std::launder(reinterpret_cast<shm::SlotHeader*>(first + slot * sizeof(shm::SlotHeader)));
}

bool SlotPool::is_filling(const SlotLease& lease) const {
  const std::uint32_t slot = raw(lease.slot);
  return slot < slots_.size() && slots_[slot].state == shm::SlotState::kFilling &&
         slots_[slot].generation == raw(lease.generation);
}

void SlotPool::set_free(std::uint32_t slot) {
  slots_[slot].state = shm::SlotState::kFree;
  set_state(header(slot), shm::SlotState::kFree, std::memory_order_release);
  free_.push_back(slot);
  counters_.add(MetricId::slots_free);
}

}  // namespace millrace
