#include "daemon/fetch/list/skip_tally.h"

#include <algorithm>

#include "daemon/formats/format_table.h"

namespace millrace {
namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// The first ones in byte order, whatever order they come in.
void keep_example(std::vector<std::string>& examples, std::string_view path) {
  const bool full = examples.size() == SkipTally::kExamples;
  if (path.size() > SkipTally::kLongestExample || (full && path >= examples.back())) return;
  examples.insert(std::upper_bound(examples.begin(), examples.end(), path), std::string(path));
  if (examples.size() > SkipTally::kExamples) examples.pop_back();
}

}  // namespace

std::string extension_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || name.size() - dot - 1 > kLongestExtension) return {};
  std::string extension(name.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(), lower);
  return extension;
}

void SkipTally::not_asked(std::string_view relative_path) {
  std::string extension = extension_of(relative_path.substr(relative_path.rfind('/') + 1));
  const bool picture = std::find(kOtherPictureExtensions.begin(), kOtherPictureExtensions.end(), extension) !=
                       kOtherPictureExtensions.end();
  count(picture ? SkipReason::kUndecoded : SkipReason::kNotAsked, std::move(extension), relative_path);
}

void SkipTally::unclassified(std::string_view relative_path) {
  count(SkipReason::kUnclassified, {}, relative_path);
}

void SkipTally::count(SkipReason reason, std::string extension, std::string_view relative_path) {
  ++files_;
  const auto key = std::pair(reason, std::move(extension));
  auto group = groups_.find(key);
  if (group == groups_.end()) {
    if (groups_.size() == kMostCounted) return;
    group = groups_.emplace(key, SkippedFiles{.reason = key.first, .extension = key.second}).first;
  }
  ++group->second.files;
  keep_example(group->second.examples, relative_path);
}

Skipped SkipTally::told() const {
  Skipped told{.files = files_};
  for (const auto& [key, group] : groups_) told.groups.push_back(group);
  const auto weight = [](const SkippedFiles& group) {  // first what somebody may miss
    return std::pair(group.reason != SkipReason::kNotAsked, group.files);
  };
  std::stable_sort(told.groups.begin(), told.groups.end(),
                   [&](const SkippedFiles& a, const SkippedFiles& b) { return weight(a) > weight(b); });
  if (told.groups.size() > kMostTold) told.groups.resize(kMostTold);
  return told;
}

std::string to_text(const Skipped& skipped) {
  if (skipped.files == 0) return {};
  return "; skipped: " +
         skipped_kinds(skipped.files, skipped.groups, [](std::uint64_t number) { return std::to_string(number); });
}

}  // namespace millrace
