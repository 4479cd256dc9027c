// Bytes from words of memory that begin anywhere in the first one: up to eight a clock. Thread-bound(the kernel's
// caller).
#pragma once

#include "hls/decoder/jpeg/scan.h"

namespace millrace {
namespace hls {

class ByteStream {
 public:
  // At a byte of a word of which none has come yet.
  void start(std::uint32_t byte) {
    at_ = byte % kBurstBytes;
    has_word_ = false;
  }

  // The next `count` bytes, 1..8, the first one lowest. False: they are not there yet.
  bool take(BurstFifo& words, std::uint32_t count, std::uint64_t& bytes) {
#pragma HLS INLINE
    if (!has_word_) {
      if (words.empty()) return false;
      word_ = words.read();
      has_word_ = true;
    }
    const std::uint32_t low = at_ % 8 * 8;
    std::uint64_t next = word_.part[(at_ / 8 + 1) & 7];
    std::uint64_t first = word_.part[at_ / 8];
    const bool crosses = at_ + count > kBurstBytes;
    if (crosses) {
      if (words.empty()) return false;
      word_ = words.read();
      next = word_.part[0];
    }
    bytes = low == 0 ? first : first >> low | next << (64 - low);
    if (count < 8) bytes &= (std::uint64_t{1} << (8 * count)) - 1;
    at_ += count;
    if (at_ >= kBurstBytes) {
      at_ -= kBurstBytes;
      has_word_ = crosses;
    }
    return true;
  }

 private:
  Burst word_ = {};
  std::uint32_t at_ = 0;
  bool has_word_ = false;
};

}  // namespace hls
}  // namespace millrace
