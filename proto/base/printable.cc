#include "proto/base/printable.h"

#include <algorithm>
#include <limits>

namespace millrace {
namespace {

using Byte = unsigned char;

bool is_continuation(Byte byte) {
  return (byte & 0xC0U) == 0x80U;
}

// U+061C, U+200E, U+200F, U+202A ... U+202E, U+2066 ... U+2069 turn the direction of what a terminal shows after them,
// U+2028 and U+2029 end a line.
bool misleads(unsigned character) {
  return character == 0x061C || character == 0x200E || character == 0x200F ||
         (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

// The length of the well-formed, printable character that `text` begins with (Unicode 15.0, table 3-7); 0 when it
// begins with none.
std::size_t printable_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<Byte>(text[i]) : Byte{0}; };
  const Byte first = at(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const Byte second = at(1);
  if (!is_continuation(second)) return 0;
  const unsigned two = (first & 0x1FU) << 6U | (second & 0x3FU);
  if (first >= 0xC2 && first <= 0xDF) return two < 0xA0 || misleads(two) ? 0 : 2;  // U+0080 ... U+009F are controls
  if (!is_continuation(at(2))) return 0;
  if (first < 0xF0 && misleads((first & 0xFU) << 12U | (second & 0x3FU) << 6U | (at(2) & 0x3FU))) return 0;
  if (first == 0xE0) return second >= 0xA0 ? 3 : 0;
  if (first == 0xED) return second <= 0x9F ? 3 : 0;  // no surrogates
  if (first >= 0xE1 && first <= 0xEF) return 3;
  if (!is_continuation(at(3))) return 0;
  if (first == 0xF0) return second >= 0x90 ? 4 : 0;
  if (first >= 0xF1 && first <= 0xF3) return 4;
  if (first == 0xF4) return second <= 0x8F ? 4 : 0;
  return 0;
}

}  // namespace

std::string printable(std::string_view text_untrusted) {
  return printable(text_untrusted, std::numeric_limits<std::size_t>::max());
}

std::string printable(std::string_view text_untrusted, std::size_t most) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(std::min(text_untrusted.size(), most));
  while (!text_untrusted.empty()) {
    const std::size_t length = printable_length(text_untrusted);
    const std::size_t added = length > 0 ? length : 4;
    if (added > most - text.size()) return text + "...";
    if (length > 0) {
      text += text_untrusted.substr(0, length);
    } else {
      const auto byte = static_cast<Byte>(text_untrusted.front());
      text += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    }
    text_untrusted.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace millrace
