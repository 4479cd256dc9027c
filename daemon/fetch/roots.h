// The folders that the daemon may read, and how a path becomes an open file beneath one of them with the caller's own
// rights. Symbolic links are followed as long as they stay beneath the roots, whether they are written relative or
// absolute.
//
// Nothing is checked by name and then opened by name: every right is read from the descriptor that is then used, or
// that the next one was opened from. What a caller may not read gets the same words whether it exists or not; that a
// file is missing is said only of a folder that the caller may search. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/fetch/caller_rights.h"
#include "daemon/fetch/folder_verdicts.h"
#include "daemon/model/caller.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class Roots {
 public:
  struct Options {
    std::vector<std::string> folders;  // absolute
    UnmappedIds unmapped;
  };

  // Holds every root and the folders above it open. kInvalid: not an absolute path; kNotFound, kDenied: cannot be
  // opened; each names the root.
  static Result<std::unique_ptr<Roots>> open(const Options& options);

  const CallerRights& rights() const { return rights_; }

  // A regular file for reading; never blocks on a FIFO, a device or a leased file. kDenied, kNotFound, kInvalid (not a
  // regular file), kExhausted (no descriptor left), kUnavailable (leased). A trusted caller's costs as much as open(2);
  // another's twice that in a folder that was reached in the last two seconds, and ten times that in a new one.
  Result<UniqueFd> open_file(std::string_view path_untrusted, const Caller& caller) const;

  // A folder that the caller may list and search, for reading its entries. Trailing slashes do not matter. Errors as
  // above.
  Result<UniqueFd> open_folder(std::string_view path_untrusted, const Caller& caller) const;

  // What a path leads to: an O_PATH descriptor and its fstat. Needs no right to the thing itself.
  struct Found {
    UniqueFd fd;
    struct stat status {};
  };
  Result<Found> find(std::string_view path_untrusted, const Caller& caller) const;

 private:
  friend class PathWalk;

  struct Root {
    std::string spelled, canonical;  // as configured, and without symbolic links; no slash at the end, "/" is empty
    std::vector<UniqueFd> above;     // from "/" to its parent
    UniqueFd fd;
  };
  struct Place {
    const Root* root = nullptr;
    std::string_view rest;  // relative; empty: the root itself
  };

  explicit Roots(UnmappedIds unmapped) : rights_(unmapped) {}
  static Result<Root> open_root(const std::string& path);
  Place place_of(
      std::string_view path) const;  // the outermost root that it lies beneath; root is null when there is none
  Result<UniqueFd> open_trusted(std::string_view path, const Caller& caller) const;
  Result<UniqueFd> open_checked(std::string_view path, const Caller& caller) const;
  Result<UniqueFd> open_walking(std::string_view path, const Caller& caller) const;
  Result<UniqueFd> reach_folder(std::string_view path, const Caller& caller) const;

  const CallerRights rights_;
  std::vector<Root> roots_;
  mutable FolderVerdicts verdicts_;
};

// The one answer to whoever asks for what is not his to know of.
Error not_readable();

// The answer when the kernel refuses the daemon something that nothing forbids the caller.
Error refused_to_daemon(const Caller& caller);

Error no_such_file();

}  // namespace millrace
