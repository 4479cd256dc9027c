#include "client/cli/suggest.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <optional>

namespace millrace::cli {
namespace {

// How many letters must be put in, left out, changed or swapped with the next (restricted Damerau-Levenshtein
// distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

// The command that the line has come to: `millrace index build ...`.
const CLI::App* innermost(const CLI::App* app) {
  const auto chosen = app->get_subcommands();
  return chosen.empty() ? app : innermost(chosen.back());
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string question(const std::string& meant) {
  return meant.empty() ? "" : "; did you mean " + meant + "?";
}

// The words that nobody wanted, as they stand in the line.
std::optional<std::string> unwanted(const CLI::App& app, const std::vector<std::string>& line) {
  const std::vector<std::string> left = app.remaining(true);
  for (const std::string& word : line) {
    const std::string bare = word.substr(0, word.find('='));
    if (std::find(left.begin(), left.end(), word) != left.end() ||
        std::find(left.begin(), left.end(), bare) != left.end())
      return bare;
  }
  return std::nullopt;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t far = word.size() >= 3 && name.starts_with(word) ? 1 : distance(word, name);
    if (far < least) {
      least = far;
      best = name;
    }
  }
  return best;
}

std::string explain(const CLI::App& app, const std::vector<std::string>& line, const CLI::ParseError& error) {
  const CLI::App& command = *innermost(&app);
  const std::optional<std::string> word = unwanted(app, line);
  if (!word) return error.what();
  const std::vector<std::string> options = options_of(command);
  if (std::find(options.begin(), options.end(), *word) != options.end())
    return *word + " is an option of `" + command.get_name() + "`: it belongs behind that word";
  if (word->starts_with('-')) return "unknown option " + *word + question(nearest(*word, options));
  const std::vector<std::string> commands = commands_of(command);
  if (!commands.empty()) return "unknown command " + *word + question(nearest(*word, commands));
  return "unexpected argument " + *word;
}

}  // namespace millrace::cli
