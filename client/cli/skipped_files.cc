#include "client/cli/skipped_files.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include "client/cli/progress.h"
#include "proto/base/printable.h"

namespace millrace::cli {
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

std::string describe_skipped(std::uint64_t files, const std::vector<SkippedFiles>& groups) {
  std::string text = grouped(files) + (files == 1 ? " file is no sample" : " files are no samples");
  std::uint64_t told = 0;
  const std::size_t shown = std::min(groups.size(), kKindsShown);
  for (const SkippedFiles& group : std::span(groups).first(shown)) {
    text += (told == 0 ? ": " : ", ") + grouped(group.files) + " " + kind_of(group);
    text += examples_of(group);
    told += group.files;
  }
  std::uint64_t further = 0;
  for (const SkippedFiles& group : std::span(groups).subspan(shown)) further += group.files;
  if (further > 0)
    text += ", and " + grouped(groups.size() - shown) +
            (groups.size() - shown == 1 ? " more kind (" : " more kinds (") + grouped(further) +
            (further == 1 ? " file)" : " files)");
  told += further;
  if (told < files) text += (told == 0 ? ": " : ", ") + grouped(files - told) + " more";
  return text;
}

void print_skipped(const Dataset& dataset) {
  if (dataset.skipped_files() == 0) return;
  std::fprintf(stderr, "millrace: %s\n", describe_skipped(dataset.skipped_files(), dataset.skipped()).c_str());
}

}  // namespace millrace::cli
