#include "kernels/cuda/plan/build_table.h"

#include <algorithm>

namespace millrace::kernels::cuda {
namespace {

static_assert(kLongestCode == jpeg::kMostCodeBits);

// All entries that begin with the code.
void add_short_code(DecodeTable& table, std::uint32_t code, int length, int symbol) {
  const int rest = kLookupBits - length;
  std::fill_n(table.codes + (code << rest), 1 << rest, make_code(length, symbol));
}

void add_short_codes(const jpeg::HuffmanSpec& spec, DecodeTable& table) {
  std::fill(std::begin(table.codes), std::end(table.codes), kNoCode);
  std::uint32_t code = 0, at = 0;
  for (int length = 1; length <= kLookupBits; ++length, code <<= 1) {
    for (int left = spec.counts[static_cast<std::size_t>(length - 1)]; left > 0; --left)
      add_short_code(table, code++, length, spec.symbols[at++]);
  }
}

}  // namespace

bool build_table(const jpeg::HuffmanSpec& spec, jpeg::TableKind kind, DecodeTable& table) {
  jpeg::CanonicalCode code;
  if (!jpeg::make_code(spec, kind, code)) return false;
  add_short_codes(spec, table);
  for (std::size_t i = 0; i < kLongestCode; ++i) {
    table.limits[i] = static_cast<std::uint16_t>(code.limit[i]);
    table.offsets[i] = static_cast<std::uint16_t>(code.offset[i + 1]);
  }
  std::copy(code.symbols.begin(), code.symbols.end(), table.symbols);
  return true;
}

}  // namespace millrace::kernels::cuda
