// A call of a kernel: images to the slots of lanes in the order of their descriptors, completions in the order in which
// they finish.
//
//   descriptors ──▶ check ──▶ a free slot ──▶ (its stages) ──▶ outcome ──▶ completion
//                     └── kBadDescriptor, kNotHere ──────────────────────────▲
//
// A lane has the stages' logic once and their memories twice: its slots, two images that take turns. A *slot* is what works
// on one image: start(job, ports), step(ports), is_over(), take_outcome(); kMakes says what it
// takes. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/check.h"
#include "hls/decoder/tensor_chain.h"

namespace millrace {
namespace hls {

// Writes completions, 16 bytes each, one after the other.
class FinishArbiter {
 public:
  FinishArbiter(const WritePort& completions, std::uint32_t phase)
      : completions_(completions), phase_(static_cast<std::uint8_t>(phase)) {}

  void finish(std::uint32_t cookie, int lane, const Outcome& outcome) {
    constexpr std::uint32_t kBytes = sizeof(Completion), kInWord = kBurstBytes / kBytes;
    const std::uint32_t at = finished_ % kInWord;
    Burst word = {};
    word.part[2 * at] = std::uint64_t{cookie} | std::uint64_t{phase_} << 32 |
                        std::uint64_t{static_cast<std::uint8_t>(outcome.reason)} << 40 |
                        std::uint64_t{static_cast<std::uint8_t>(lane)} << 48;
    word.part[2 * at + 1] =
        std::uint64_t{outcome.symbols} | std::uint64_t{outcome.reason == Reason::kDone ? outcome.sum : 0} << 32;
    completions_.write(finished_ / kInWord, word, at * kBytes, kBytes);
    ++finished_;
  }
  std::uint32_t finished() const { return finished_; }

 private:
  WritePort completions_;
  std::uint8_t phase_;
  std::uint32_t finished_ = 0;
};

template <typename Slot>
class Engine {
 public:
  // Completes every image of the batch; without a batch that can be completed, nothing.
  void run(const Ports& ports, std::uint32_t phase) {
    ports_ = ports;
    batch_ = read_batch(ports.commands, ports.completions.bytes);
    next_ = 0;
    FinishArbiter arbiter(ports.completions, phase);
    for (int i = 0; i < kLanes * kSlots; ++i) busy_[i] = false;
    while (arbiter.finished() < batch_.images) {
      if (!turn(arbiter)) abandon(arbiter);
    }
  }

  const Slot& slot(int index) const { return slots_[index]; }

 private:
  // Every slot's stages step once. False: nothing moved.
  bool turn(FinishArbiter& arbiter) {
    bool moved = false;
    for (int lane = 0; lane < kLanes; ++lane) {
#pragma HLS UNROLL
      for (int slot = 0; slot < kSlots; ++slot) {
        moved = take_turn(lane * kSlots + slot, arbiter) || moved;
      }
    }
    return moved;
  }

  bool take_turn(int i, FinishArbiter& arbiter) {
    if (!busy_[i]) return begin(i, arbiter);
    const bool moved = slots_[i].step(ports_);
    if (!slots_[i].is_over()) return moved;
    arbiter.finish(cookies_[i], i / kSlots, slots_[i].take_outcome());
    busy_[i] = false;
    return true;
  }

  // The next image that can begin; those before it that cannot are finished.
  bool begin(int slot, FinishArbiter& arbiter) {
    bool moved = false;
    while (next_ < batch_.images && !busy_[slot]) {
      Job job;
      const Buffers buffers = {ports_.commands, ports_.encoded, ports_.tensors.bytes};
      const Reason reason = read_job(buffers, batch_, next_++, Slot::kMakes, job);
      moved = true;
      if (reason != Reason::kDone) {
        arbiter.finish(job.image.cookie, slot / kSlots, {reason, 0, 0});
        continue;
      }
      busy_[slot] = true;
      cookies_[slot] = job.image.cookie;
      slots_[slot].start(job, ports_);
    }
    return moved;
  }

  // A fault of the stages, not of an image: nothing can go on.
  void abandon(FinishArbiter& arbiter) {
    for (int i = 0; i < kLanes * kSlots; ++i) {
      if (busy_[i]) arbiter.finish(cookies_[i], i / kSlots, {Reason::kTooLong, 0, 0});
      busy_[i] = false;
    }
  }

  Ports ports_ = {};
  BatchHead batch_ = {};
  std::uint32_t next_ = 0;
  bool busy_[kLanes * kSlots] = {};
  std::uint32_t cookies_[kLanes * kSlots] = {};
  Slot slots_[kLanes * kSlots];
};

}  // namespace hls
}  // namespace millrace
