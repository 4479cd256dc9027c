// Which files of a folder tree are a dataset's samples, and what is told of the others. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

inline constexpr std::uint32_t kMostExtensions = 64;    // that a client may name
inline constexpr std::uint32_t kLongestExtension = 16;  // bytes

enum class Unclassified : std::uint8_t { kListed, kSkipped };  // files beside class folders

struct FileChoice {
  std::vector<std::string> extensions;  // lower case, without the dot; empty: every file
  Unclassified unclassified = Unclassified::kListed;
};

enum class SkipReason : std::uint8_t {
  kNotAsked,      // its extension is none of those asked for
  kUndecoded,     // likewise, and it is that of a picture which this daemon does not decode
  kUnclassified,  // it lies beside the class folders
};

// Files that are no samples, for one reason and, but for kUnclassified, of one extension.
struct SkippedFiles {
  SkipReason reason = SkipReason::kNotAsked;
  std::string extension;  // lower case; empty: none, or a long one
  std::uint64_t files = 0;
  std::vector<std::string> examples;  // relative paths, the first ones in byte order
};

struct Skipped {
  std::uint64_t files = 0;           // in all
  std::vector<SkippedFiles> groups;  // the largest ones first; a few of them
};

}  // namespace millrace
