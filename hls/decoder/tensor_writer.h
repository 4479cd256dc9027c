// Pixels to elements, as luma where the tensor is grey, by the batch's tables, and elements to memory: by planes (NCHW) or pixel by pixel (NHWC). Each
// plane is a run of bytes without gaps, gathered to whole words of memory. A group a clock where elements have one byte,
// a quarter of one where they have four. Thread-bound(the kernel's caller).
#pragma once

#include "hls/base/memory.h"
#include "hls/decoder/resampler.h"

namespace millrace {
namespace hls {

// A run of bytes in the tensors.
class WordGatherer {
 public:
  void start(std::uint64_t byte) {
    word_ = static_cast<std::uint32_t>(byte / kBurstBytes);
    first_ = end_ = static_cast<std::uint32_t>(byte % kBurstBytes);
    bytes_ = Burst{};
    sum_ = 0;
  }
  // REQUIRES: the run's place is a multiple of `bytes`, which is 1, 2 or 4.
  void append(const WritePort& tensors, std::uint32_t element, std::uint32_t bytes) {
#pragma HLS INLINE
    bytes_.part[end_ / 8] |= std::uint64_t{element} << (end_ % 8 * 8);
    sum_ += element << (end_ % 4 * 8);
    end_ += bytes;
    if (end_ == kBurstBytes) flush(tensors);
  }
  // Of what was appended, as words of 32 bits where they lie.
  std::uint32_t sum() const {
    return sum_;
  }
  void flush(const WritePort& tensors) {
    if (end_ > first_) tensors.write(word_, bytes_, first_, end_ - first_);
    ++word_;
    first_ = end_ = 0;
    bytes_ = Burst{};
  }

 private:
  Burst bytes_ = {};
  std::uint32_t word_ = 0, first_ = 0, end_ = 0, sum_ = 0;
};

class TensorWriter {
 public:
  void start(const Job& job);
  // `setup`: Batch::store. `done`: behind the last element.
  bool step(SetupFifo& setup, GroupFifo& pixels, const WritePort& tensors, FlagFifo& done);
  // Completion::sum, once `done` is told.
  std::uint32_t sum() const { return runs_[0].sum() + runs_[1].sum() + runs_[2].sum(); }

 private:
  enum class State : std::uint8_t { kIdle, kLoad, kStore, kTell };

  bool load(SetupFifo& setup);
  bool store(GroupFifo& pixels, const WritePort& tensors);
  void store_group(const Group& group, int pixels, const WritePort& tensors);

  Job job_ = {};
  State state_ = State::kIdle;
  std::uint32_t loaded_ = 0;  // words
  std::uint32_t mask_ = 0;    // of an element
  std::uint32_t rows_left_ = 0;
  int group_ = 0;
  WordGatherer runs_[3];  // a plane each; NHWC: the first
  std::uint32_t elements_[3][256] = {};
};

}  // namespace hls
}  // namespace millrace
