#include "kernels/cuda/build_table.h"

#include <algorithm>

namespace millrace::kernels::cuda {
namespace {

// All entries that begin with the code.
void add_short_code(DecodeTable& table, std::uint32_t code, int length, int symbol) {
  const int rest = kLookupBits - length;
  std::fill_n(table.codes + (code << rest), 1 << rest, make_code(length, symbol));
}

// T.81 annex C, with the checks of libjpeg's jpeg_make_d_derived_tbl().
bool build(const jpeg::HuffmanSpec& spec, DecodeTable& table) {
  std::fill(std::begin(table.codes), std::end(table.codes), kNoCode);
  std::copy(spec.symbols.begin(), spec.symbols.end(), table.symbols);
  std::uint32_t code = 0, at = 0;
  for (int length = 1; length <= kLongestCode; ++length, code <<= 1) {
    const std::uint32_t count = spec.counts[static_cast<std::size_t>(length - 1)];
    if (count != 0 && code + count >= 1U << length) return false;
    if (at + count > spec.symbols.size()) return false;
    table.offsets[length - 1] = static_cast<std::uint16_t>(at - code);
    for (std::uint32_t i = 0; length <= kLookupBits && i < count; ++i)
      add_short_code(table, code + i, length, spec.symbols[at + i]);
    code += count;
    at += count;
    table.limits[length - 1] = static_cast<std::uint16_t>(code << (kLongestCode - length));
  }
  return true;
}

}  // namespace

bool build_ac_table(const jpeg::HuffmanSpec& spec, DecodeTable& table) {
  return build(spec, table);
}

bool build_dc_table(const jpeg::HuffmanSpec& spec, DecodeTable& table) {
  return std::ranges::all_of(spec.symbols, [](int size) { return size <= 15; }) && build(spec, table);
}

}  // namespace millrace::kernels::cuda
