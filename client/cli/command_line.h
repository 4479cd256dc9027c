// The line that a program was called with. Thread-bound(its owner).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/cli/options.h"

namespace millrace::cli {

class CommandLine {
 public:
  // Has --help and --version, which prints `version`.
  CommandLine(const std::string& name, const std::string& help, const std::string& version);
  ~CommandLine();

  Command top() const;  // what the program itself takes, and its subcommands

  // Gives variables their values and calls the commands' callbacks; nothing. Or, where no command is to run, prints
  // what was asked for on stdout (kFine), or one line about what is wrong on stderr (kUsage): the exit code.
  std::optional<int> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace millrace::cli
