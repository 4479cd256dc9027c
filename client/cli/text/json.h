// Writes JSON (RFC 8259), one value after the other; commas are put where they belong. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::cli {

class Json {
 public:
  Json& begin_object();
  Json& end_object();
  Json& begin_array();
  Json& end_array();
  Json& key(std::string_view name);              // in an object, before each value
  Json& value(std::string_view text_untrusted);  // bytes that are not UTF-8 become U+FFFD
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(double number);  // null if it is not finite
  Json& value(std::uint64_t number);
  Json& value(bool truth);

  template <class T>
  Json& member(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  const std::string& text() const { return text_; }

 private:
  Json& raw(std::string_view piece);
  Json& open(char bracket);
  Json& close(char bracket);

  std::string text_;
  bool comma_ = false;  // before the next key or value
};

}  // namespace millrace::cli
