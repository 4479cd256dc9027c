#include "daemon/observe/key_values.h"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "proto/base/printable.h"

namespace millrace {

void KeyValues::begin(std::string_view name) {
  if (!text_.empty()) text_ += ' ';
  text_ += name;
  text_ += '=';
}

KeyValues& KeyValues::add(std::string_view name, std::string_view text_untrusted) {
  begin(name);
  text_ += '"';
  for (const char c : printable(text_untrusted)) {
    if (c == '"' || c == '\\') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
  return *this;
}

KeyValues& KeyValues::add(std::string_view name, std::uint64_t number) {
  begin(name);
  text_ += std::to_string(number);
  return *this;
}

KeyValues& KeyValues::add(std::string_view name, std::chrono::microseconds time) {
  constexpr std::int64_t kMicros = 1'000'000;
  std::array<char, 48> digits;
  std::snprintf(digits.data(), digits.size(), "%" PRId64 ".%06" PRId64, time.count() / kMicros, time.count() % kMicros);
  begin(name);
  text_ += digits.data();
  return *this;
}

}  // namespace millrace
