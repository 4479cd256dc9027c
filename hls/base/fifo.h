// A FIFO between two stages of a kernel. In hardware it is an hls::stream of that depth; compiled by g++ it is a ring
// that notes what a stream of that depth would have made wrong: a write that finds no room, a read that finds nothing.
//
//   stage ──write()──▶ [ kDepth elements ] ──read()──▶ stage        a stage asks full() and empty() first
//
// A card that serves goes on after such a fault: the element is lost, or a zero. Thread-bound(the kernel's caller).
#pragma once

#include <cstdint>

#if defined(__SYNTHESIS__)
#include <hls_stream.h>
#endif

namespace millrace {
namespace hls {

#if defined(__SYNTHESIS__)

template <typename T, int kDepth>
class Fifo {
 public:
  bool empty() const { return stream_.empty(); }
  bool full() const { return stream_.full(); }
  void write(const T& value) { stream_.write(value); }
  T read() { return stream_.read(); }
  void clear() {}

 private:
  mutable ::hls::stream<T, kDepth> stream_;
};

#else

template <typename T, int kDepth>
class Fifo {
 public:
  static_assert(kDepth > 0 && (kDepth & (kDepth - 1)) == 0, "a power of two");

  bool empty() const { return written_ == read_; }
  bool full() const { return size() == kDepth; }

  void write(const T& value) {
    if (full()) {
      ++overflows_;
      return;
    }
    ring_[written_++ & kMask] = value;
    if (size() > high_water_) high_water_ = size();
  }
  T read() {
    if (!empty()) return ring_[read_++ & kMask];
    ++underflows_;
    return T();
  }
  void clear() { written_ = read_ = 0; }

  // --- what tests look at ---
  static constexpr std::uint32_t depth() { return kDepth; }
  std::uint32_t size() const { return written_ - read_; }
  std::uint32_t high_water() const { return high_water_; }  // the most elements that it ever had
  std::uint32_t overflows() const { return overflows_; }
  std::uint32_t underflows() const { return underflows_; }

 private:
  static constexpr std::uint32_t kMask = kDepth - 1;

  T ring_[kDepth] = {};
  std::uint32_t written_ = 0, read_ = 0;  // elements, ever
  std::uint32_t high_water_ = 0, overflows_ = 0, underflows_ = 0;
};

#endif

}  // namespace hls
}  // namespace millrace
