#include "client/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/text/help_format.h"
#include "client/cli/text/suggest.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

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

// One line for `error`, thrown by `app`'s parse(): "unknown command runn; did you mean run?".
std::string explain(const CLI::App& app, const std::vector<std::string>& line, const CLI::ParseError& error) {
  const CLI::App& command = *innermost(&app);
  const std::optional<std::string> word = unwanted(app, line);
  const bool lacks_word = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (!word && lacks_word && !commands_of(command).empty()) {
    std::string known;
    for (const std::string& name : commands_of(command)) known += (known.empty() ? "" : ", ") + name;
    return "`" + command.get_name() + "` takes one of the commands " + known;
  }
  if (!word) return error.what();
  const std::vector<std::string> options = options_of(command);
  if (std::find(options.begin(), options.end(), *word) != options.end())
    return *word + " is an option of `" + command.get_name() + "`: it belongs behind that word";
  if (word->starts_with('-')) return "unknown option " + *word + question(*word, options);
  const std::vector<std::string> commands = commands_of(command);
  if (!commands.empty()) return "unknown command " + *word + question(*word, commands);
  return "unexpected argument " + *word;
}

}  // namespace

CommandLine::CommandLine(const std::string& name, const std::string& help, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", version);
  app_->formatter(std::make_shared<HelpFormat>());  // subcommands inherit it
}

CommandLine::~CommandLine() = default;

Command CommandLine::top() const {
  return *app_;
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error), kFine;  // --help and --version
    const std::vector<std::string> line(argv + 1, argv + argc);
    std::fprintf(stderr, "millrace: %s\n%s\n", printable(explain(*app_, line, error)).c_str(),
                 "millrace: `millrace --help` and `millrace COMMAND --help` show what there is");
    return kUsage;
  }
}

}  // namespace millrace::cli
