// Which code of a book four widths take: the one with the least sum that is wide enough, of equals the lowest. A table of
// all widths there are, made once. Internal to kernels/l3. Immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/l3/book.h"

namespace millrace::kernels::l3 {

class CodeChooser {
 public:
  static constexpr int kWidthsOf8 = 9;  // 0 to 8 bits

  // Of the book of 8 bits, or of 16.
  static const CodeChooser& of_bits(int bits);

  const Book& book() const { return book_; }
  // REQUIRES: widths up to 8, or up to 16.
  std::uint8_t code_for(const std::uint8_t* widths) const {
    const unsigned first = widths[0] * widths_ + widths[1], second = widths[2] * widths_ + widths[3];
    return code_at(first * widths_ * widths_ + second);
  }
  // REQUIRES: the four widths as digits of a number, the first one the highest, in base kWidthsOf8 of 8 bits.
  std::uint8_t code_at(std::size_t place) const { return codes_[place]; }

 private:
  CodeChooser(const Book& book, unsigned most_width);

  const Book& book_;
  unsigned widths_;                  // that there are
  std::vector<std::uint8_t> codes_;  // by the four widths
};

}  // namespace millrace::kernels::l3
