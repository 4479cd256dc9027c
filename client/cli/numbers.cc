#include "client/cli/numbers.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace millrace::cli {
namespace {

template <class Number>
std::string text_of(Number number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

// Whether all of `text` is one number, and its value.
template <class Number>
bool read(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

template <class Number>
CLI::Validator in_range(Number least, Number most, const std::string& kind) {
  const bool open = most == std::numeric_limits<Number>::max();
  const std::string range = " in [" + text_of(least) + " - " + text_of(most) + "]";  // HelpFormat reads it
  CLI::Validator check(
      [=](std::string& text) -> std::string {
        Number number{};
        if (read(text, number) && number >= least && number <= most) return "";
        return "must be a " + kind + " from " + text_of(least) + " to " + text_of(most) + ", is " + text;
      },
      open ? "" : "NUMBER" + range);
  return check;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return in_range(least, most, "whole number");
}

CLI::Validator real_number(double least, double most) {
  return in_range(least, most, "number");
}

CLI::Validator positive_size() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const std::string wrong = "must be a size of at least 1 byte (300000, 512KiB, 4MiB), is " + text;
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        std::uint64_t number = 0;
        if (digits == 0 || !read(text.substr(0, digits), number) || number == 0) return wrong;
        try {
          std::string converted = text;
          const std::string complaint = CLI::AsSizeValue(false)(converted);
          if (!complaint.empty() || !read(converted, number) || number == 0) return wrong;
          text = converted;
          return "";
        } catch (const CLI::Error&) {  // an unknown unit, or too large a number
          return wrong;
        }
      },
      "SIZE");
}

CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "");
}

}  // namespace millrace::cli
