// Inflates a zlib stream (RFC 1950, 1951) a part at a time, faster than libraries do where, as in pictures, most of it
// is literals: up to three come from one look-up. Takes ordinary streams alone: whatever is odd, damaged or cut off is
// kOdd, and zlib's to judge. What it takes, zlib takes, with the same bytes.
//
// Thread-bound(its owner). 12 KiB; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/cpu/png/inflate_codes.h"

namespace millrace::kernels::png {

// Bytes readable behind the input's end, whatever they are, and writable behind the output's.
inline constexpr std::size_t kInflateInputSlack = 32, kInflateOutputSlack = 512;

// The stream's next bytes.
struct InflateInput {
  const std::uint8_t* next = nullptr;
  const std::uint8_t* end = nullptr;
  bool is_last = false;  // whether there are no more behind `end`
};

// Where inflated bytes go.
struct InflateOutput {
  const std::uint8_t* begin = nullptr;  // all that came before, or at least the last Inflater::kHistory of it
  std::uint8_t* next = nullptr;         // right behind that
  const std::uint8_t* end = nullptr;
};

enum class InflateStatus : std::uint8_t {
  kFull,    // the output is; it may go beyond its end by kInflateOutputSlack
  kHungry,  // less than Inflater::kMeal bytes of input are left, and they are not the last
  kEnd,     // of the deflate data
  kOdd,     // for zlib
};

// The stream's bits that were read and not taken, the next one lowest. Of `count` the lowest six bits alone are true.
struct InflateBits {
  std::uint64_t bits = 0;
  std::uint64_t count = 0;
};

// What is left of a block of symbols, by an instruction set. kEnd: its end. Nobody asks for more input than the slack.
using InflateSymbols = InflateStatus (*)(const InflateCodes& codes, InflateBits& bits, InflateInput& in,
                                         InflateOutput& out);

class Inflater {
 public:
  static constexpr std::size_t kHistory = std::size_t{32} << 10;
  // With so many bytes of input there is no kHungry.
  static constexpr std::size_t kMeal = 1024;

  explicit Inflater(Target target);

  // Goes on as far as it can. After kEnd and kOdd it must not be called again. What stands from `in.next` on must come
  // again with the next call, and the 8 bytes before it, too; of the last input it may be behind the end, within the
  // slack. kEnd: `in.next` is the first byte behind the data.
  InflateStatus run(InflateInput& in, InflateOutput& out);

 private:
  enum class Stage : std::uint8_t { kBegin, kBlock, kStored, kSymbols };

  // False: it is odd.
  bool begin(InflateInput& in);
  bool begin_block(InflateInput& in);
  bool begin_stored(InflateInput& in);
  bool copy_stored(InflateInput& in, InflateOutput& out);
  bool read_codes(InflateInput& in);

  InflateSymbols symbols_;
  Stage stage_ = Stage::kBegin;
  bool is_final_ = false;
  bool has_fixed_codes_ = false;  // codes_
  std::uint32_t stored_left_ = 0;
  InflateBits kept_;
  InflateCodes codes_;
};

}  // namespace millrace::kernels::png
