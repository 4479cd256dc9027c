// Text in columns of a terminal: how wide it is there, cut or filled to a width, broken into lines. Text is printable
// UTF-8. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::cli {

// A letter of Chinese takes two columns, an accent that is put on a letter none.
std::size_t columns_of(std::string_view text);

enum class Align { kLeft, kRight };

// In exactly so many columns: filled with spaces, or cut, with "~" as its last column.
std::string fitted(std::string_view text, std::size_t columns, Align align = Align::kLeft);

// Broken at spaces into lines of at most so many columns; a word that is longer is broken anywhere.
std::vector<std::string> broken(std::string_view text, std::size_t columns);

}  // namespace millrace::cli
