// The folder of the store: ours alone, reached by descriptor, so that no link and nobody else's file is ever followed or
// opened. Thread-safe: immutable, and the kernel's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class StoreFolder {
 public:
  // Makes the folder (0700) where there is none; the one above it has to be there. Errors: kDenied, it is a link, no
  // folder or somebody else's; kUnsupported, it is on a file system that is no place for a store; or the kernel's.
  static Result<StoreFolder> open(const std::string& path);

  // A file of ours: regular, this user's, with one name. `flags` as open() has them; new ones are 0600. Errors:
  // kNotFound, there is none (or O_EXCL finds one: kPrecondition); kDenied, not such a file; or the kernel's.
  Result<UniqueFd> open_file(const std::string& name, int flags) const;
  struct Status {
    std::uint64_t size;
    std::uint64_t taken;  // bytes of the file system
  };
  // nullopt: there is none that can be looked at.
  std::optional<Status> status(const std::string& name) const;
  Result<std::vector<std::string>> names() const;
  // kUnavailable: the folder itself was removed, and takes no files any more.
  Result<void> check_there() const;
  bool remove(const std::string& name) const;

  const std::string& path() const { return path_; }

 private:
  StoreFolder(std::string path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}

  std::string path_;
  UniqueFd folder_;
};

}  // namespace millrace
