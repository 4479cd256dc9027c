// A line of the log that programs read: name=value name="text with blanks", a blank between them (logfmt). What is not
// printable is written \xNN, " and \ with a backslash before them, so that no value can end early or begin another
// line. Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

class KeyValues {
 public:
  KeyValues& add(std::string_view name, std::string_view text_untrusted);
  KeyValues& add(std::string_view name, std::uint64_t number);
  KeyValues& add(std::string_view name, std::chrono::microseconds time);  // in seconds: 12.345678

  const std::string& text() const { return text_; }

 private:
  void begin(std::string_view name);

  std::string text_;
};

}  // namespace millrace
