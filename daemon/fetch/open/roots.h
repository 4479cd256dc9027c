// The folders that the daemon may read, and how a path becomes an open file beneath one of them with the caller's own
// rights. Symbolic links are followed as long as they stay beneath the roots, whether they are written relative or
// absolute.
//
// Nothing is checked by name and then opened by name: every right is read from the descriptor that is then used, or
// that the next one was opened from. What a caller may not read gets the same words whether it exists or not; that a
// file is missing is said only of a folder that the caller may search.
//
// With an opener (opener_link.h) that holds for trusted callers alone, who are root and the daemon's own user. For all
// others it opens the files, and the kernel decides; none of the daemon's own checks is asked for them then.
//
// A root need not be there from the start, nor stay the same folder: see root_folder.h. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/fetch/open/caller_rights.h"
#include "daemon/fetch/open/folder_verdicts.h"
#include "daemon/fetch/open/opener_roots.h"
#include "daemon/fetch/open/path_walk.h"
#include "daemon/fetch/open/refusals.h"
#include "daemon/fetch/open/root_folder.h"
#include "daemon/fetch/read/read_file.h"
#include "daemon/model/caller.h"
#include "daemon/model/files/usual_opener.h"
#include "daemon/model/in_force.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class Roots {
 public:
  struct Options {
    std::vector<std::string> folders;  // absolute
    UnmappedIds unmapped;
    std::chrono::milliseconds look_every{1000};  // for a root by its name
    std::string opener;                          // its socket, or kOpenerOnceThere; empty: none
    bool opens_for_root = false;                 // it does, for clients that are root
    std::size_t threads = 1;                     // that may ask for what lies beneath one root
    std::size_t all_threads = 1;                 // that may ask for anything
  };

  // Holds every root that is there and the folders above it open; the log says which are not. kInvalid: not an absolute
  // path.
  static Result<std::unique_ptr<Roots>> open(const Options& options);

  // The same for other folders, for use(); those that are in force already are kept as they are. May wait for disks.
  Result<RootFolders> open_folders(const std::vector<std::string>& folders) const;
  // From here on these are the roots. What was opened beneath others before stays open.
  void use(RootFolders folders) { in_force_.put(std::move(folders)); }

  // Those that were not there when they were last looked for, as configured.
  std::vector<std::string> missing() const;

  // As configured, the first beneath which it lies by its name; nullopt: none. Asks no file system.
  std::optional<std::string> root_of(std::string_view path_untrusted) const;

  // Whether it lies beneath roots that were not there when they were last looked for, and beneath no other.
  bool beneath_missing(std::string_view path_untrusted) const;
  // not_readable() with which roots there are, which everybody may know, and where they are set; other errors as they
  // are. For the client that gave the path.
  Error with_roots(Error error) const;

  const CallerRights& rights() const { return rights_; }

  // A regular file for reading; never blocks on a FIFO, a device or a leased file. kDenied, kNotFound, kInvalid (not a
  // regular file), kPrecondition (leased), kUnavailable (the daemon's own want, see host_shortage.h). What lies beneath a
  // root that is not there is kNotFound, and the message says so. A trusted caller's costs as much as open(2);
  // another's twice that in a folder that was reached in the last two seconds, and ten times that in a new one.
  Result<OpenFile> open_file(std::string_view path_untrusted, const Caller& caller) const;

  // As open_file() of each; by an opener, in a message for every few.
  std::vector<Result<OpenFile>> open_files(std::span<const std::string> paths_untrusted, const Caller& caller) const;
  // Whether an opener opens this caller's files.
  bool by_opener(const Caller& caller) const;
  // Fetcher::tell_opener()
  Result<void> tell_opener() const;

  // A folder that the caller may list and search, for reading its entries. Trailing slashes do not matter. Errors as
  // above.
  Result<UniqueFd> open_folder(std::string_view path_untrusted, const Caller& caller) const;

  // The type of what a path leads to, links followed: S_IFMT bits. Needs no right to the thing itself.
  Result<mode_t> type_of(std::string_view path_untrusted, const Caller& caller) const;

  // Lets go of roots that nobody has wanted for some seconds, for an administrator who wants to unmount them. Looks at
  // most once a second. Whether any is held still.
  bool let_go_of_unwanted() const;

 private:
  class CallerWalk;

  struct Place {
    std::shared_ptr<const RootFolder::Opened> root;
    std::string_view rest;  // relative; empty: the root itself
  };

  Roots(UnmappedIds unmapped, std::chrono::milliseconds look_every) : rights_(unmapped), look_every_(look_every) {}
  Result<Found> find(std::string_view path_untrusted, const Caller& caller) const;
  // In the outermost root that is there. kDenied: beneath none; kNotFound: beneath one that is not there.
  Result<Place> place_of(std::string_view path) const;
  Result<OpenFile> open_trusted(std::string_view path, const Caller& caller) const;
  Result<OpenFile> open_checked(std::string_view path, const Caller& caller) const;
  Result<OpenFile> open_walking(std::string_view path, const Caller& caller) const;
  Result<UniqueFd> reach_folder(std::string_view path, const Caller& caller) const;

  const CallerRights rights_;
  const std::chrono::milliseconds look_every_;
  InForce<RootFolders> in_force_{std::make_shared<const RootList>()};
  mutable FolderVerdicts verdicts_;
  std::unique_ptr<OpenerRoots> opener_;  // null: none
  bool opens_for_root_ = false;
  mutable std::atomic<std::int64_t> looked_{0};  // by let_go_of_unwanted(), milliseconds. Publishes nothing but itself
};

}  // namespace millrace
