// A part of a folder of test data, for what takes a sanitizer's build minutes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/under_sanitizer.h"

namespace millrace {

// Copies the files of `from` to the new folder `into`, subfolders and all: every one, or where a sanitizer watches
// every eighth by name. How many.
inline std::size_t copy_some_files(const std::string& from, const std::string& into) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), from));
  std::sort(files.begin(), files.end());
  const std::size_t step = under_sanitizer() ? 8 : 1;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < files.size(); i += step, ++copied) {
    fs::create_directories((into / files[i]).parent_path());
    fs::copy_file(from / files[i], into / files[i]);
  }
  return copied;
}

}  // namespace millrace
