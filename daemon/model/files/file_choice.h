// Which files of a folder tree are a dataset's samples, and what is told of the others. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/skipped_files.h"

namespace millrace {

inline constexpr std::uint32_t kMostExtensions = 64;    // that a client may name
inline constexpr std::uint32_t kLongestExtension = 16;  // bytes

enum class Unclassified : std::uint8_t { kListed, kSkipped };  // files beside class folders

struct FileChoice {
  std::vector<std::string> extensions;  // lower case, without the dot; empty: every file
  Unclassified unclassified = Unclassified::kListed;
};

struct Skipped {
  std::uint64_t files = 0;           // in all
  std::vector<SkippedFiles> groups;  // the largest ones first; a few of them

  friend bool operator==(const Skipped&, const Skipped&) = default;
};

}  // namespace millrace
