// Makes a dataset of files that a client lists itself, a part at a time, so that it takes turns with listings of folders
// on one thread. No file system is asked: whether a file is there, and may be read, is found out when it is read.
//
//   folder /data   part "a/1.jpg\0b/2.jpg\0" labels 3 4   part "a/1.jpg\0" ...    ──step()──▶ ... ──▶ Dataset
//
// Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fetch/open/roots.h"
#include "daemon/model/files/folder_lister.h"
#include "proto/base/result.h"

namespace millrace {

class ClientFileList {
 public:
  using Outcome = Result<std::shared_ptr<const Dataset>>;

  static constexpr std::size_t kLongestPath = 4'096;  // bytes beneath the folder

  // `roots` outlives it.
  ClientFileList(const Roots& roots, ListTask task);

  // Takes one more part; an outcome once there is none left or something is wrong: kInvalid (a path that is none, labels
  // that are not as many), kDenied (beneath no root), both naming the sample; kExhausted (no
  // room), kUnavailable (no memory), kCancelled. REQUIRES: no outcome yet.
  std::optional<Outcome> step();

 private:
  Result<void> begin();
  Result<void> take(FilesPart part);
  Result<void> check(std::string_view path);
  std::string name_of(std::string_view path) const;  // of the sample that is next
  Outcome finish();

  const Roots& roots_;
  ListTask task_;
  std::string folder_;  // without a slash at its end
  bool begun_ = false;
  bool beneath_root_ = false;  // the folder is, so all paths are
  std::size_t next_ = 0;       // of the parts
  std::string full_;           // a path with its folder
  std::string paths_;          // each with a zero byte after it
  std::vector<Dataset::Entry> entries_;
  std::uint64_t fingerprint_;
};

}  // namespace millrace
