// Appends bits to memory, from the lowest of each byte on. Internal to kernels/packed. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <cstring>

namespace millrace::kernels::packed {

// Writes up to 8 bytes beyond the last one that has bits.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : at_(out) {}

  // REQUIRES: bits <= 56, or 64 at a byte; `value` has no bits above them.
  inline __attribute__((always_inline)) void put(std::uint64_t value, unsigned bits) {
    word_ |= value << used_;
    std::memcpy(at_, &word_, sizeof word_);
    const unsigned all = used_ + bits;
    at_ += all >> 3;
    word_ = all == 64 ? 0 : word_ >> (all & ~7U);
    used_ = all & 7;
  }
  inline __attribute__((always_inline)) void align() {
    if (used_ == 0) return;
    ++at_;
    word_ = 0;
    used_ = 0;
  }
  // Behind the last byte. REQUIRES: align().
  std::uint8_t* end() const { return at_; }

 private:
  std::uint8_t* at_;
  std::uint64_t word_ = 0;  // bits of the byte at at_
  unsigned used_ = 0;       // 0..7
};

}  // namespace millrace::kernels::packed
