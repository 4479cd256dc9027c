// What a word that nobody knows was probably meant to be. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

// The one of `known` that `word` is most similar to; nothing if it is similar to none.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean run?", or nothing.
std::string question(std::string_view word, const std::vector<std::string>& known);

}  // namespace millrace::cli
