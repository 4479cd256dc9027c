#include "client/cli/text/help_format.h"

#include <CLI/CLI.hpp>
#include <sstream>
#include <utility>

namespace millrace::cli {

std::string short_type(const std::string& type) {
  const std::string name = type.substr(0, type.find(':'));
  const std::string bounds = name.size() == type.size() ? "" : type.substr(name.size() + 1);
  if (name.starts_with('[')) return name;
  if (bounds.starts_with("SIZE")) return "SIZE";
  const std::size_t in = bounds.find(" in [");
  if (in != std::string::npos && bounds.ends_with(']')) {
    std::string range = bounds.substr(in + 5, bounds.size() - in - 6);
    const std::size_t dash = range.find(" - ");
    return dash == std::string::npos ? range : range.replace(dash, 3, "-");
  }
  return name == "UINT" || name == "INT" || name == "FLOAT" ? "NUMBER" : name;
}

std::string wrap(std::string line) {
  constexpr std::size_t kColumns = 80;
  constexpr std::size_t kDescriptions = 30;  // where CLI11 begins them
  const bool example = line.starts_with("  millrace");
  const std::size_t indent = line.starts_with("  ") ? kDescriptions : 0;
  std::string text;
  while (!example && line.size() > kColumns) {
    const std::size_t space = line.rfind(' ', kColumns);
    if (space == std::string::npos || space <= indent) break;
    text += line.substr(0, space) + '\n';
    line = std::string(indent, ' ') + line.substr(space + 1);
  }
  return text + line;
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";
  const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  const std::string type = short_type(option->get_type_name());
  return (type.empty() ? "" : " " + type) + (several ? " ..." : "");
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required() && option->nonpositional()) text += " (required)";
  const std::string& usual = option->get_default_str();
  if (!usual.empty() && text.find("default:") == std::string::npos) text += " (default: " + usual + ")";
  return text;
}

std::string HelpFormat::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) text.erase(at, 1);
  std::istringstream lines(text);
  std::string wrapped;
  for (std::string line; std::getline(lines, line);) wrapped += wrap(line) + '\n';
  return wrapped;
}

}  // namespace millrace::cli
