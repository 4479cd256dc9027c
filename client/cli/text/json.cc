#include "client/cli/text/json.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace millrace::cli {
namespace {

// How many bytes of well-formed UTF-8 (RFC 3629) stand at the front of `text`; 0 if none do.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out += '"';
}

}  // namespace

Json& Json::raw(std::string_view piece) {
  if (comma_) text_ += ',';
  text_ += piece;
  comma_ = true;
  return *this;
}

Json& Json::open(char bracket) {
  raw(std::string_view(&bracket, 1));
  comma_ = false;
  return *this;
}

Json& Json::close(char bracket) {
  text_ += bracket;
  comma_ = true;
  return *this;
}

Json& Json::begin_object() {
  return open('{');
}
Json& Json::end_object() {
  return close('}');
}
Json& Json::begin_array() {
  return open('[');
}
Json& Json::end_array() {
  return close(']');
}

Json& Json::key(std::string_view name) {
  raw(quoted(name) + ":");
  comma_ = false;
  return *this;
}

Json& Json::value(std::string_view text_untrusted) {
  return raw(quoted(text_untrusted));
}
Json& Json::value(std::uint64_t number) {
  return raw(std::to_string(number));
}
Json& Json::value(bool truth) {
  return raw(truth ? "true" : "false");
}

Json& Json::value(double number) {
  if (!std::isfinite(number)) return raw("null");
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.9g", number);
  return raw(digits.data());
}

}  // namespace millrace::cli
