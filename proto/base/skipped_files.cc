#include "proto/base/skipped_files.h"

#include <algorithm>
#include <span>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kKindsShown = 4;
constexpr std::size_t kLongestExample = 100;  // bytes

std::string kind_of(const SkippedFiles& group) {
  if (group.reason == SkipReason::kUnclassified) return "beside the class folders";
  return group.extension.empty() ? "without an extension" : "." + printable(group.extension);
}

std::string examples_of(const SkippedFiles& group) {
  if (group.examples.empty()) return {};
  std::string text = " (" + printable(group.examples.front(), kLongestExample);
  if (group.files > 1) text += ", ...";
  if (group.reason == SkipReason::kUndecoded) text += "; not decoded: convert them";
  return text + ")";
}

}  // namespace

std::string skipped_kinds(std::uint64_t files, const std::vector<SkippedFiles>& groups,
                          std::string (*number)(std::uint64_t)) {
  std::string text;
  std::uint64_t told = 0;
  const std::size_t shown = std::min(groups.size(), kKindsShown);
  for (const SkippedFiles& group : std::span(groups).first(shown)) {
    text += (told == 0 ? "" : ", ") + number(group.files) + " " + kind_of(group) + examples_of(group);
    told += group.files;
  }
  const std::size_t kinds = groups.size() - shown;
  std::uint64_t further = 0;
  for (const SkippedFiles& group : std::span(groups).subspan(shown)) further += group.files;
  if (further > 0)
    text += ", and " + number(kinds) + (kinds == 1 ? " more kind (" : " more kinds (") + number(further) +
            (further == 1 ? " file)" : " files)");
  told += further;
  if (told < files) text += (told == 0 ? "" : ", ") + number(files - told) + " more";
  return text;
}

}  // namespace millrace
