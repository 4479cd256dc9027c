#include "client/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

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
bool read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

template <class Number>
Check in_range(Number least, Number most, const std::string& kind) {
  const bool open = most == std::numeric_limits<Number>::max();
  const std::string range = " in [" + text_of(least) + " - " + text_of(most) + "]";  // short_type() reads it
  return {[=](std::string& text) -> std::string {
            Number number{};
            if (read_number(text, number) && number >= least && number <= most) return "";
            return "must be a " + kind + " from " + text_of(least) + " to " + text_of(most) + ", is " + text;
          },
          open ? "" : "NUMBER" + range};
}

template <class Value>
Option add(CLI::App& app, const std::string& names, Value& to, const std::string& help) {
  return Option(*app.add_option(names, to, help));
}

}  // namespace

Check whole_number(std::uint64_t least, std::uint64_t most) {
  return in_range(least, most, "whole number");
}

Check real_number(double least, double most) {
  return in_range(least, most, "number");
}

Check positive_size() {
  return {[](std::string& text) -> std::string {
            const std::string wrong = "must be a size of at least 1 byte (300000, 512KiB, 4MiB), is " + text;
            const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
            std::uint64_t number = 0;
            if (digits == 0 || !read_number(text.substr(0, digits), number) || number == 0) return wrong;
            try {
              std::string converted = text;
              const std::string complaint = CLI::AsSizeValue(false)(converted);
              if (!complaint.empty() || !read_number(converted, number) || number == 0) return wrong;
              text = converted;
              return "";
            } catch (const CLI::Error&) {  // an unknown unit, or too large a number
              return wrong;
            }
          },
          "SIZE"};
}

Check not_empty() {
  return {[](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, ""};
}

Check existing_file() {
  return {[](std::string& path) { return CLI::ExistingFile(path); }, CLI::ExistingFile.get_description()};
}

Check one_of(const std::vector<std::string>& names, Letters letters) {
  const CLI::Validator is_member =
      letters == Letters::kAnyCase ? CLI::IsMember(names, CLI::ignore_case) : CLI::IsMember(names);
  return {[is_member](std::string& value) { return is_member(value); }, ""};
}

Option Option::required() const {
  return option_->required(), *this;
}

Option Option::check(const Check& check) const {
  return option_->transform(CLI::Validator(check.complaint, check.bounds)), *this;
}

Option Option::needs(Option other) const {
  return option_->needs(other.option_), *this;
}

Option Option::excludes(Option other) const {
  return option_->excludes(other.option_), *this;
}

Option Option::group(const std::string& heading) const {
  return option_->group(heading), *this;
}

Option Option::type_name(const std::string& name) const {
  return option_->type_name(name), *this;
}

Option Option::show_default() const {
  return option_->capture_default_str(), *this;
}

Option Option::optional_value(const std::string& otherwise) const {
  return option_->expected(0, 1)->default_str(otherwise), *this;
}

Option Option::one_value_each() const {
  return option_->allow_extra_args(false), *this;
}

Option Command::option(const std::string& names, std::string& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::optional<std::string>& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::vector<std::string>& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, int& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::uint32_t& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::optional<std::uint32_t>& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::uint64_t& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::optional<float>& to, const std::string& help) const {
  return add(*app_, names, to, help);
}
Option Command::option(const std::string& names, std::optional<double>& to, const std::string& help) const {
  return add(*app_, names, to, help);
}

Option Command::option(const std::string& names, std::function<void(const std::string&)> take,
                       const std::string& help) const {
  return Option(*app_->add_option_function<std::string>(names, take, help));
}

Option Command::flag(const std::string& names, bool& to, const std::string& help) const {
  return Option(*app_->add_flag(names, to, help));
}

Command Command::subcommand(const std::string& name, const std::string& help) const {
  return *app_->add_subcommand(name, help);
}

void Command::require_subcommand() const {
  app_->require_subcommand(1);
}

void Command::footer(const std::string& text) const {
  app_->footer(text);
}

void Command::callback(std::function<void()> call) const {
  app_->callback(std::move(call));
}

bool Command::has(const std::string& name) const {
  return app_->count(name) > 0;
}

void reject(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

}  // namespace millrace::cli
