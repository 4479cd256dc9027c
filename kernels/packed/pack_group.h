// Packing the blocks of one group. All targets make the same bytes. Internal to kernels/packed. Thread-safe but for the
// chooser: plain functions over the caller's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/target.h"
#include "kernels/jpeg/header.h"
#include "kernels/packed/layout.h"
#include "kernels/packed/shape_chooser.h"

namespace millrace::kernels::packed {

// Appends bits to memory, from the lowest of each byte on. Internal to kernels/packed. Thread-bound(its owner).
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

// How large a component's coefficients may be: see kernels/jpeg/ordinary.h.
struct Limits {
  alignas(64) std::array<std::uint16_t, jpeg::kCoefficients> harmless;  // magnitudes that need no closer look; zig-zag
  std::array<std::uint16_t, jpeg::kCoefficients> quant;                 // natural order
};

// Blocks in zig-zag order, DC as level.
struct Blocks {
  const std::int16_t* const* at;
  int count;  // 1..kGroupBlocks
};

inline constexpr std::size_t kPackingRoom = layout::kMostGroupBytes + 64;

// Bytes written to `out`, which has kPackingRoom; 0: a block is out of the ordinary.
using PackGroup = std::size_t (*)(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser, std::uint8_t* out);

PackGroup group_packer(Target target);
std::size_t pack_group_scalar(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser, std::uint8_t* out);
#if defined(__x86_64__)
std::size_t pack_group_avx2(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser, std::uint8_t* out);
// REQUIRES: has_unpacking_vectors() of unpack.h.
std::size_t pack_group_avx512(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser, std::uint8_t* out);
#endif

// DC level and widths of the differences into the group's head, differences to `out`. REQUIRES: ordinary blocks.
void put_differences(const Blocks& blocks, std::uint8_t* head, BitWriter& out);

// One block's values as plain code packs them: its shape. `bitmap`: a bit for each coefficient, DC's being 0.
std::uint8_t pack_values(const std::int16_t* block, std::uint64_t bitmap, ShapeChooser& chooser, BitWriter& out);

// Bytes of bitmap, where DC's bit is left out.
inline unsigned bitmap_bytes(std::uint64_t bitmap) {
  return bitmap == 0 ? 0 : (70 - static_cast<unsigned>(__builtin_clzll(bitmap))) / 8;
}

// Bitmaps of all blocks, the first one's last; where the group ends.
std::uint8_t* put_bitmaps(const std::uint64_t* bitmaps, const std::uint8_t* shapes, int count, std::uint8_t* out);

}  // namespace millrace::kernels::packed
