// A Huffman table as the kernels read it, from shared memory: 10 bits of the stream give the symbol of a short code,
// the canonical limits of T.81 F.2.2.3 that of a longer one. 2,368 bytes. Values.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

inline constexpr int kLookupBits = 10;
inline constexpr int kLongestCode = 16;

// A code and what it says. 0: there is none.
//   0-4  its bits           5-8  bits of the value after it
//   9-12 zeros before it    13   EOB (T.81 F.1.2.2.1; any run below 15 without a value, as libjpeg reads it)
using Code = std::uint16_t;
inline constexpr Code kNoCode = 0;

MILLRACE_HD constexpr int code_bits(Code code) {
  return code & 31;
}
MILLRACE_HD constexpr int value_bits(Code code) {
  return code >> 5 & 15;
}
MILLRACE_HD constexpr int zero_run(Code code) {
  return code >> 9 & 15;
}
MILLRACE_HD constexpr bool ends_block(Code code) {
  return (code >> 13 & 1) != 0;
}
// Of an AC table; for a DC table `symbol` is the value's size.
MILLRACE_HD constexpr Code make_code(int bits, int symbol) {
  const int run = symbol >> 4, size = symbol & 15;
  return static_cast<Code>(bits | size << 5 | run << 9 | (size == 0 && run != 15 ? 1 : 0) << 13);
}

struct alignas(16) DecodeTable {
  Code codes[1 << kLookupBits];         // by the next bits of the stream; kNoCode: longer, or none
  std::uint16_t limits[kLongestCode];   // codes of length + 1 bits, aligned to 16, are below
  std::uint16_t offsets[kLongestCode];  // + a code of length + 1 bits = index of its symbol, modulo 65,536
  std::uint8_t symbols[256];
};
static_assert(sizeof(DecodeTable) == 2368);

// The code that 16 bits of the stream, `top`, begin with.
MILLRACE_HD inline Code find_code(const DecodeTable& table, std::uint32_t top) {
  const Code code = table.codes[top >> (16 - kLookupBits)];
  if (code != kNoCode) return code;
  for (int length = kLookupBits + 1; length <= kLongestCode; ++length) {
    if (top >= table.limits[length - 1]) continue;
    const std::uint32_t at = table.offsets[length - 1] + (top >> (16 - length));
    return make_code(length, table.symbols[at & 255]);
  }
  return kNoCode;
}

}  // namespace millrace::kernels::cuda
