// Bits of a scan from bytes as they are in the file: the zero after 0xFF is dropped (T.81 F.1.2.3), and the data ends
// before a marker. Lives in a thread's registers.
//
// The bytes are hostile. Nothing outside [first, end) is read; after the data's end come zeros, which take() refuses.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

// Bytes of a scan: offsets count from an address that is a multiple of 16.
struct ScanBytes {
  const std::uint8_t* origin;
  std::uint32_t first, end;
};

class BitReader {
 public:
  static constexpr std::uint32_t kNoBoundary = 0xffffffff;

  // At the byte `at`, first <= at < end; at the next one where that one is stuffing.
  MILLRACE_HD BitReader(const ScanBytes& scan, std::uint32_t at) : origin_(scan.origin), end_(scan.end), next_(at) {
    if (at > scan.first && scan.origin[at - 1] == 0xFF) ++next_;
  }

  // As many bits as there are, and at least 32 unless the data ends.
  MILLRACE_HD void refill() {
    while (available_ < 32 && next_ < end_) {
      if (past_ < 0 && next_ >= boundary_) past_ = 0;
      if (!load_word()) load_bytes();
    }
    if (past_ < 0 && next_ >= boundary_) past_ = 0;
  }

  // The next 32, zeros where there are none.
  MILLRACE_HD std::uint32_t peek() const { return static_cast<std::uint32_t>(bits_ >> 32); }

  // False: there are not so many. REQUIRES: refill() first; count <= 32.
  MILLRACE_HD bool take(int count) {
    if (count > available_) return false;
    bits_ <<= count;
    available_ -= count;
    return true;
  }

  // From here on is_over() tells whether all bits of the bytes before `boundary` are taken; if so, overhang() is how
  // many after it are taken, too. REQUIRES: a multiple of 4, at least 16 after the boundary before, where that one
  // is over, or after the first byte.
  MILLRACE_HD void set_boundary(std::uint32_t boundary) {
    boundary_ = boundary;
    past_ = -1;
  }
  MILLRACE_HD bool is_over() const { return available_ <= past_; }
  MILLRACE_HD int overhang() const { return past_ - available_; }

  // Where the data ends, as far as that is known: before a marker, or with the bytes.
  MILLRACE_HD std::uint32_t end() const { return end_; }
  MILLRACE_HD bool has_ended() const { return next_ >= end_; }
  MILLRACE_HD int available() const { return available_; }

  // Of the next bit, counted from the origin, stuffing included.
  MILLRACE_HD std::uint64_t position() const {
    std::uint32_t byte = next_;
    int bits = available_;
    for (; bits > 0; bits -= 8) byte -= is_stuffing(byte - 1) ? 2 : 1;
    return std::uint64_t{byte} * 8 + static_cast<std::uint64_t>(-bits);
  }

 private:
  // Of a byte that was read: 0xFF never stands before another one.
  MILLRACE_HD bool is_stuffing(std::uint32_t byte) const {
    return byte > 0 && origin_[byte] == 0 && origin_[byte - 1] == 0xFF;
  }

  MILLRACE_HD void append(std::uint32_t value, int count) {
    bits_ |= std::uint64_t{value} << (64 - available_ - count);
    available_ += count;
    if (past_ >= 0) past_ += count;
  }

  // Four bytes at once where none of them is 0xFF. False: nothing done.
  MILLRACE_HD bool load_word() {
    if (next_ % 4 != 0 || end_ - next_ < 4) return false;
    const std::uint32_t word = load_aligned<std::uint32_t>(origin_ + next_);
    if (((~word - 0x01010101U) & word & 0x80808080U) != 0) return false;
    append(swap_bytes(word), 32);
    next_ += 4;
    return true;
  }

  // Up to the next multiple of 4, or the data's end.
  MILLRACE_HD void load_bytes() {
    const std::uint32_t stop = next_ / 4 * 4 + 4;
    while (next_ < stop && next_ < end_) {
      const std::uint32_t byte = origin_[next_];
      if (byte == 0xFF && (next_ + 1 == end_ || origin_[next_ + 1] != 0)) {
        end_ = next_;
        return;
      }
      append(byte, 8);
      next_ += byte == 0xFF ? 2 : 1;
    }
  }

  const std::uint8_t* origin_;
  std::uint32_t end_;
  std::uint32_t next_;
  std::uint32_t boundary_ = kNoBoundary;
  std::uint64_t bits_ = 0;  // from the top; zeros after those available
  int available_ = 0;
  int past_ = -1;  // bits loaded from after the boundary; -1: not there yet
};

}  // namespace millrace::kernels::cuda
