#include "client/cli/top/text_columns.h"

#include <wchar.h>

#include <algorithm>
#include <clocale>

namespace millrace::cli {
namespace {

// A letter at the beginning of valid UTF-8: its bytes and its columns.
struct Letter {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

// wcwidth() knows letters in a locale with UTF-8 alone, and the program's may be another.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(ours())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static ::locale_t ours() {
    static const ::locale_t kLocale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);  // null: the program's stays
    return kLocale;
  }
  const ::locale_t before_;
};

Letter first_letter(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::size_t bytes = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (bytes == 1 || bytes > text.size()) return {};
  wchar_t code = static_cast<wchar_t>(byte(0) & (0xff >> (bytes + 1)));
  for (std::size_t at = 1; at < bytes; ++at) code = static_cast<wchar_t>(code << 6 | (byte(at) & 0x3f));
  return {bytes, static_cast<std::size_t>(std::max(::wcwidth(code), 0))};
}

// The longest beginning of so many columns.
struct Beginning {
  std::size_t bytes = 0, columns = 0;
};

Beginning beginning_of(std::string_view text, std::size_t columns) {
  const Utf8Locale locale;
  Beginning beginning;
  while (beginning.bytes < text.size()) {
    const Letter letter = first_letter(text.substr(beginning.bytes));
    if (beginning.columns + letter.columns > columns) break;
    beginning.bytes += letter.bytes;
    beginning.columns += letter.columns;
  }
  return beginning;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return beginning_of(text, ~std::size_t{0} / 2).columns;
}

std::string fitted(std::string_view text, std::size_t columns, Align align) {
  if (columns == 0) return "";
  const Beginning whole = beginning_of(text, columns);
  if (whole.bytes < text.size()) {
    const Beginning part = beginning_of(text, columns - 1);
    return std::string(text.substr(0, part.bytes)) + std::string(columns - 1 - part.columns, ' ') + '~';
  }
  const std::string space(columns - whole.columns, ' ');
  return align == Align::kLeft ? std::string(text) + space : space + std::string(text);
}

std::vector<std::string> broken(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  columns = std::max<std::size_t>(columns, 2);  // of which a letter takes at most so many
  while (!text.empty()) {
    std::size_t bytes = beginning_of(text, columns).bytes;
    std::size_t next = bytes;
    if (bytes < text.size()) {
      const std::size_t space = text.substr(0, bytes + 1).rfind(' ');
      if (space != std::string_view::npos && space > 0) {
        bytes = space;
        next = space + 1;
      }
    }
    lines.emplace_back(text.substr(0, bytes));
    text.remove_prefix(next);
  }
  return lines;
}

}  // namespace millrace::cli
