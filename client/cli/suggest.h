// What a command line that makes no sense was probably meant to be. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace millrace::cli {

// The one of `known` that `word` is most similar to; nothing if it is similar to none.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// One line for `error`, thrown by `app`'s parse(): "unknown command 'runn'; did you mean 'run'?".
std::string explain(const CLI::App& app, const std::vector<std::string>& line, const CLI::ParseError& error);

}  // namespace millrace::cli
