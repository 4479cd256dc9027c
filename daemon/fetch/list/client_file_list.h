// Makes a dataset of files, or of parts of files, that a client lists itself, a part of the list at a time, so that it
// takes turns with listings of folders on one thread. No file system is asked: whether a file is there, and may be read,
// is found out when it is read.
//
//   folder /data   part "a/1.jpg\0b/2.jpg\0" labels 3 4   part "a/1.jpg\0" ...    ──step()──▶ ... ──▶ Dataset
//   folder /data   part "s.tar\0" files 0 0 offsets 512 8192 lengths 7000 6500 ...  ──step()──▶ ... ──▶ Dataset
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
  // that are not as many, a range that no file can have), kDenied (beneath no root), naming the sample or the file;
  // kExhausted (no room), kUnavailable (no memory), kCancelled. REQUIRES: no outcome yet; every part of one kind, with
  // ranges or without.
  std::optional<Outcome> step();

 private:
  struct KnownFile {
    Dataset::Entry path;
    std::uint64_t fingerprint;  // of the path
  };

  Result<void> begin();
  Result<void> take(FilesPart part);
  Result<void> take_file(std::string_view path, std::size_t at, std::int64_t label);
  Result<void> take_known_file(std::string_view path, std::size_t at);
  Result<void> take_ranges(const RangesInFiles& ranges, const std::vector<std::int64_t>& labels);
  Result<void> check(std::string_view path, std::string_view what, std::size_t number);
  std::string name_of(std::string_view path) const;
  Bytes memory() const;
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
  std::vector<KnownFile> files_;  // of samples with ranges
  Dataset::Parts samples_are_;
  std::uint64_t fingerprint_;
};

}  // namespace millrace
