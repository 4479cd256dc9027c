// The codes that a Huffman table stands for (T.81 annex C): they need no more than where each length begins, because
// codes of one length are consecutive numbers. By it a code of any length is found. Values; thread-safe: plain
// functions.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

inline constexpr int kMostCodeBits = 16;

// A code of `length` bits is below limit[length - 1] when both are aligned to 16 bits;
// symbol = symbols[offset[length] + code].
struct CanonicalCode {
  std::array<std::uint32_t, kMostCodeBits> limit;
  std::array<std::int32_t, kMostCodeBits + 1> offset;
  std::array<std::uint8_t, 256> symbols;
};

// What a table's symbols are: a DC coefficient's size, or a run of zeros and the size of the AC coefficient after it.
enum class TableKind : std::uint8_t { kDc, kAc };

// false: libjpeg-turbo would refuse the table (codes that do not fit, the code of all ones, more than 256 symbols, DC
// sizes above 15); `code` means nothing then.
bool make_code(const HuffmanSpec& spec_untrusted, TableKind kind, CanonicalCode& code);

}  // namespace millrace::kernels::jpeg
