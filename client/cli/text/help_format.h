// How --help shows options: what may be given, short, and the default at the end of the description. Immutable.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace::cli {

// `line` in 80 columns: what does not fit goes on beneath where it began. Examples stay whole.
std::string wrap(std::string line);

class HelpFormat : public CLI::Formatter {
 public:
  // " 1-256", " TEXT ..."; for positionals as well.
  std::string make_option_opts(const CLI::Option* option) const override;
  // "... (default: 3)"
  std::string make_option_desc(const CLI::Option* option) const override;
  // One empty line between two groups, not two.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// CLI11's "UINT:INT in [1 - 256]" as "1-256", "UINT:SIZE [b, kb(=1024b), ...]" as "SIZE", "UINT" as "NUMBER".
std::string short_type(const std::string& type);

}  // namespace millrace::cli
