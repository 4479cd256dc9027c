// A list of samples, as `millrace run`, `preview` and `cache warm` take it in a folder's place: JSON Lines, one sample a
// line. Read as it is wanted: a list of ten million lines is nowhere as a whole.
//
//   {"path": "/data/shard.tar", "offset": 1536, "length": 48211, "label": 3}
//
// Without offset and length the sample is the whole file. A label that is left out, or null, is -1. A relative path
// begins in the list's own folder. A path's bytes that are no UTF-8 stand as "\udc80" ... "\udcff", as Python writes them.
// Further members and empty lines say nothing.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "millrace/client.h"
#include "proto/base/result.h"

namespace millrace::cli {

// Thread-bound(its owner).
class ListFile {
 public:
  static constexpr std::size_t kLongestLine = 64 * 1024;  // bytes

  // Whether a file is meant as a list: by its name, .jsonl or .ndjson, or by its first byte, {.
  static bool is_one(const std::string& path);

  // `path`: absolute. Errors begin with it.
  static Result<ListFile> open(const std::string& path);

  // nullopt: there is none left. kInvalid: a line that is none, and which: "/data/list.jsonl:17: ...".
  Result<std::optional<ListedFile>> next();

 private:
  ListFile(std::string path, std::ifstream file);
  Result<bool> read_line();
  Error wrong(const std::string& what) const;

  std::string path_;
  std::string folder_;  // with a slash at its end
  std::ifstream file_;
  std::vector<char> line_;  // ends with a zero byte
  std::uint64_t number_ = 0;
};

// What every sample's path begins with, for a private daemon's root; it reads the whole list.
Result<std::string> common_folder_of(const std::string& list);

// `count` samples with their positions, spread evenly over the list; all, of a shorter one. It is read twice.
struct ListedSample {
  std::uint64_t position = 0;
  ListedFile file;
};
Result<std::vector<ListedSample>> spread_over(const std::string& list, std::uint64_t count);

}  // namespace millrace::cli
