// Counts the files that a listing leaves out, by reason and extension, and keeps a few of their names. Bounded, however
// many names there are. Thread-bound(its owner).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/model/files/file_choice.h"

namespace millrace {

// In lower case, without the dot; empty: the name has none, or one of more than 16 bytes.
std::string extension_of(std::string_view name);

class SkipTally {
 public:
  static constexpr std::size_t kMostCounted = 256;      // groups; files of further ones count in all only
  static constexpr std::size_t kMostTold = 16;          // groups
  static constexpr std::size_t kExamples = 3;           // of a group
  static constexpr std::size_t kLongestExample = 1024;  // bytes; longer paths are counted and not kept

  // For the reason that its extension was not asked for.
  void not_asked(std::string_view relative_path);
  void unclassified(std::string_view relative_path);

  Skipped told() const;

 private:
  void count(SkipReason reason, std::string extension, std::string_view relative_path);

  std::uint64_t files_ = 0;
  std::map<std::pair<SkipReason, std::string>, SkippedFiles> groups_;
};

// "; skipped: " and skipped_kinds(); empty if nothing was.
std::string to_text(const Skipped& skipped);

}  // namespace millrace
