// The code books of L3 version 2 (README.md, "Codes"): a code is four widths, of groups of 2 x 2 residuals each. The two
// lists, book8.inc and book16.inc, are part of the format: with other lines it would be another version. Processors, GPUs
// and cards all take them from here. C++14. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {
namespace kernels {
namespace l3 {

constexpr int kCodes = 255;         // that a book has; the byte 255 is none
constexpr int kGroupsOfCode = 4;    // 2 x 2 samples each
constexpr int kSamplesOfCode = 16;  // 8 columns of a row pair
constexpr std::uint8_t kNoBytes = 255;

struct Code {
  std::uint8_t widths[kGroupsOfCode];  // bits of a residual: 0 ... 8, or 0 ... 16
};

struct Book {
  Code codes[kCodes + 1];          // the last one, which is none, has widths of 0
  std::uint8_t bytes[kCodes + 1];  // of a code's payload: half the sum of its widths; kNoBytes: there is no such code
};

constexpr std::uint8_t width_of(char digit) {
  return static_cast<std::uint8_t>(digit >= 'a' ? digit - 'a' + 10 : digit - '0');
}

// `text`: kCodes words of four digits, with a space behind each.
constexpr Book read_book(const char* text) {
  Book book{};
  for (int code = 0; code < kCodes; ++code, ++text) {
    int sum = 0;
    for (int group = 0; group < kGroupsOfCode; ++group, ++text) {
      book.codes[code].widths[group] = width_of(*text);
      sum += width_of(*text);
    }
    book.bytes[code] = static_cast<std::uint8_t>(sum / 2);
  }
  book.bytes[kCodes] = kNoBytes;
  return book;
}

constexpr Book kBook8 = read_book(
#include "kernels/l3/book8.inc"
);
constexpr Book kBook16 = read_book(
#include "kernels/l3/book16.inc"
);

}  // namespace l3
}  // namespace kernels
}  // namespace millrace
