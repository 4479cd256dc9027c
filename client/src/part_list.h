// A list of parts of files as the daemon takes it: messages that say each file's path once, and of each sample which file
// and which bytes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "millrace/epoch.h"
#include "millrace/v1/dataset.pb.h"
#include "proto/base/result.h"

namespace millrace {
inline namespace client {

// Thread-bound(its owner).
class PartList {
 public:
  // `folder`: what all paths begin with (file_list.h).
  PartList(std::uint64_t dataset_id, std::string folder);

  // One more sample. kInvalid: a range that no file has; a stamp although the files before have none, or the other way
  // round. REQUIRES: file.path is absolute, beneath the folder.
  Result<void> add(const ListedFile& file);
  std::size_t bytes() const { return bytes_; }        // that the next message has, at most
  std::uint64_t samples() const { return samples_; }  // so far, of all messages
  // What was added since the last one.
  v1::ListParts take(bool last);

 private:
  static constexpr std::size_t kMostKnown = 1U << 20U;  // files; of more the daemon hears some paths again

  std::uint32_t number_of(const std::string& path);

  const std::size_t before_;  // bytes of a path that the folder has
  v1::ListParts next_;
  std::size_t bytes_ = 0;
  std::uint64_t samples_ = 0;
  std::unordered_map<std::string, std::uint32_t> known_;  // files by their paths
  std::uint32_t files_ = 0;
  std::string newest_path_;
  std::uint32_t newest_ = 0;  // its file
  std::optional<bool> stamped_;
};

// Whether a list needs one: some sample is a part, or a file has a stamp.
inline bool needs_parts(const ListedFile& file) {
  return file.range.has_value() || file.stamp.has_value();
}

// kInvalid: offset + length are not below 2^63.
Result<void> check_range(std::uint64_t offset, std::uint64_t length);

}  // namespace client
}  // namespace millrace
