// What of a folder tree is no sample, and how that is told: the daemon where nothing is left, clients where something
// is. Values; the function is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

enum class SkipReason : std::uint8_t {
  kNotAsked,      // the extension is none of those asked for
  kUndecoded,     // likewise, and it is that of a picture in a format that the daemon does not decode: convert it
  kUnclassified,  // it lies beside the class folders
};

// Files of a folder tree that are no samples, of one reason and, but for kUnclassified, of one extension.
struct SkippedFiles {
  SkipReason reason = SkipReason::kNotAsked;
  std::string extension;  // lower case without the dot; empty: none, or a long one
  std::uint64_t files = 0;
  std::vector<std::string> examples;  // at most 3 relative paths, byte for byte, the first ones in byte order

  friend bool operator==(const SkippedFiles&, const SkippedFiles&) = default;
};

// "10 .txt (a/README.txt, ...), 2 .bmp (a/1.bmp, ...; not decoded: convert them), and 3 more kinds (7 files), 1 more".
// Four kinds at the most, long names cut short. `files`: in all, those included that are in none of `groups`. `number`:
// how numbers are written.
std::string skipped_kinds(std::uint64_t files, const std::vector<SkippedFiles>& groups,
                          std::string (*number)(std::uint64_t));

}  // namespace millrace
