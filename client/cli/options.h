// Commands and options of a command line, and checks of what options take. CLI11 stays behind it: an object that
// includes CLI11 takes four seconds more to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace millrace::cli {

// What an option may take. A value, immutable.
struct Check {
  // "", or what is wrong with `value`; may put it into the form that the option's variable gets.
  std::function<std::string(std::string& value)> complaint;
  std::string bounds;  // for --help: see short_type()
};

// "must be a whole number from 1 to 400, is -3": never wrapped. Without `most` --help shows no bounds.
Check whole_number(std::uint64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
// Finite.
Check real_number(double least, double most);
// "4MiB" and "300000" alike become a number of bytes: at least one, at most what 64 bits hold.
Check positive_size();
// A name or a path.
Check not_empty();
Check existing_file();

enum class Letters : bool { kAsTheyAre, kAnyCase };  // kAnyCase: the value becomes the name as it stands in `names`
Check one_of(const std::vector<std::string>& names, Letters letters = Letters::kAsTheyAre);
template <class Value>
Check one_of(const std::map<std::string, Value>& values, Letters letters = Letters::kAsTheyAre) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return one_of(names, letters);
}

// Handle of an option; copies are of the same one, which lives as long as its command line. Thread-bound(its owner).
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option required() const;
  Option check(const Check& check) const;
  Option needs(Option other) const;     // not without it
  Option excludes(Option other) const;  // not with it

  // --help: the heading above it; "TEXT" and the like behind its name; its variable's value so far as the default.
  Option group(const std::string& heading) const;
  Option type_name(const std::string& name) const;
  Option show_default() const;

  // Its value may be left out, and is `otherwise` then.
  Option optional_value(const std::string& otherwise) const;
  // Of a vector: each mention takes one value, and not all words up to the next option.
  Option one_value_each() const;

 private:
  CLI::Option* option_;
};

// Handle of a command or of one of its subcommands, as Option is one. `names`: "-n,--count", or "folder" for a
// positional one. Variables get their values when the line is parsed, and must live until then.
class Command {
 public:
  Command(CLI::App& app) : app_(&app) {}  // NOLINT: the handle of a command is as good as the command

  Option option(const std::string& names, std::string& to, const std::string& help) const;
  Option option(const std::string& names, std::optional<std::string>& to, const std::string& help) const;
  Option option(const std::string& names, std::vector<std::string>& to, const std::string& help) const;
  Option option(const std::string& names, int& to, const std::string& help) const;
  Option option(const std::string& names, std::uint32_t& to, const std::string& help) const;
  Option option(const std::string& names, std::optional<std::uint32_t>& to, const std::string& help) const;
  Option option(const std::string& names, std::uint64_t& to, const std::string& help) const;
  Option option(const std::string& names, std::optional<float>& to, const std::string& help) const;
  Option option(const std::string& names, std::optional<double>& to, const std::string& help) const;
  // Calls `take` with the text.
  Option option(const std::string& names, std::function<void(const std::string&)> take, const std::string& help) const;
  Option flag(const std::string& names, bool& to, const std::string& help) const;

  // It inherits the footer that the command has so far.
  Command subcommand(const std::string& name, const std::string& help) const;
  void require_subcommand() const;  // exactly one
  void footer(const std::string& text) const;

  // Called once the line is parsed and names the command; may reject().
  void callback(std::function<void()> call) const;
  // Whether the line has that option. REQUIRES: it is parsed.
  bool has(const std::string& name) const;

 private:
  CLI::App* app_;
};

// Of what only several options together show, in a command's callback: a usage error, "--rank: must be below ...".
// Throws CLI::ValidationError.
[[noreturn]] void reject(const std::string& option, const std::string& why);

}  // namespace millrace::cli
