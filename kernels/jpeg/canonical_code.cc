#include "kernels/jpeg/canonical_code.h"

#include <algorithm>

namespace millrace::kernels::jpeg {

// The checks are those of libjpeg's jpeg_make_d_derived_tbl().
bool make_code(const HuffmanSpec& spec_untrusted, TableKind kind, CanonicalCode& code) {
  constexpr int kMostDcSize = 15;
  const auto& symbols = spec_untrusted.symbols;
  std::uint32_t next = 0;   // code
  std::int32_t before = 0;  // symbols of shorter codes
  for (int length = 1; length <= kMostCodeBits; ++length, next <<= 1) {
    const auto at = static_cast<std::size_t>(length - 1);
    const std::uint8_t count = spec_untrusted.counts[at];
    code.offset[at + 1] = before - static_cast<std::int32_t>(next);
    next += count;
    before += count;
    if (count != 0 && next >= 1U << length) return false;
    code.limit[at] = next << (kMostCodeBits - length);
  }
  code.offset[0] = 0;
  code.symbols = symbols;
  return before <= static_cast<std::int32_t>(symbols.size()) &&
         (kind == TableKind::kAc || std::ranges::all_of(symbols, [](int size) { return size <= kMostDcSize; }));
}

}  // namespace millrace::kernels::jpeg
