#include "kernels/l3/encoding/code_chooser.h"

namespace millrace::kernels::l3 {

const CodeChooser& CodeChooser::of_bits(int bits) {
  static const CodeChooser of_8(kBook8, 8), of_16(kBook16, 16);
  return bits == 8 ? of_8 : of_16;
}

// From the widest widths down: what is wide enough for some widths has just these, or is wide enough for one bit more in
// one of them.
CodeChooser::CodeChooser(const Book& book, unsigned most_width)
    : book_(book), widths_(most_width + 1), codes_(std::size_t{widths_} * widths_ * widths_ * widths_, kCodes) {
  const unsigned steps[] = {widths_ * widths_ * widths_, widths_ * widths_, widths_, 1};
  for (int code = kCodes; code-- > 0;) {
    unsigned at = 0;
    for (int group = 0; group < kGroupsOfCode; ++group) at += book.codes[code].widths[group] * steps[group];
    codes_[at] = static_cast<std::uint8_t>(code);
  }
  const auto is_better = [&](std::uint8_t a, std::uint8_t b) {  // kCodes, which is none, has the most bytes
    return book.bytes[a] != book.bytes[b] ? book.bytes[a] < book.bytes[b] : a < b;
  };
  for (std::size_t at = codes_.size(); at-- > 0;) {
    for (const unsigned step : steps) {
      if (at / step % widths_ == most_width) continue;
      if (is_better(codes_[at + step], codes_[at])) codes_[at] = codes_[at + step];
    }
  }
}

}  // namespace millrace::kernels::l3
