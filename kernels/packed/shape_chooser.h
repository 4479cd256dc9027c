// Which shape holds a block in the fewest bits. Answers are remembered: photographs ask a few thousand questions.
// Internal to kernels/packed. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/target.h"

namespace millrace::kernels::packed {

// What a block needs: `widths`, a nibble a lane (0 for lanes without values, kWideWidth for 12 bits, which lane 1 has
// only where lane 0 has, too), bytes of bitmap, and how many values there are.
struct Need {
  std::uint32_t widths = 0;
  unsigned bitmap_bytes = 0;
  unsigned values = 0;
};

// The cheapest shape; of equally cheap ones the first. kRawShape where none holds it. `values` is taken as it is.
int find_shape(const Need& need);
#if defined(__x86_64__)
int find_shape_avx2(const Need& need);
int find_shape_avx512bw(const Need& need);
int find_shape_avx512(const Need& need);  // REQUIRES: has_unpacking_vectors() of unpack.h
#endif

class ShapeChooser {
 public:
  explicit ShapeChooser(Target target);

  int choose(const Need& need) {
    // The last lane counts as half full: few questions, and as good answers.
    const unsigned values = need.values == 0 ? 0 : ((need.values - 1) & ~7U) + 4;
    const std::uint64_t question =
        need.widths | std::uint64_t{values} << 32 | std::uint64_t{need.bitmap_bytes} << 40 | kAsked;
    std::uint64_t& memo = memos_[question * 0x9E3779B97F4A7C15U >> (64 - kMemoBits)];
    if (memo << 8 != question << 8)
      memo = question | static_cast<std::uint64_t>(find_({need.widths, need.bitmap_bytes, values})) << 56;
    return static_cast<int>(memo >> 56);
  }

 private:
  static constexpr int kMemoBits = 13;
  static constexpr std::uint64_t kAsked = std::uint64_t{1} << 48;

  int (*find_)(const Need& need);
  std::vector<std::uint64_t> memos_;  // a question, and its shape in the uppermost byte
};

}  // namespace millrace::kernels::packed
