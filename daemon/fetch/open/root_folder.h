// One configured root: the folder by its names, and as it was last opened.
//
//   not there ──a look finds it──▶ there ──a look does not──▶ not there
//                                  └──another folder bears its name: mounted over, or made again──▶ there
//
// A look opens it anew by its name, folder by folder from "/". Looks are taken when somebody wants it, but not more
// often than its interval, ten times that while it is not there, and by one thread at a time: should that one hang, as
// on a file server that does not answer, the others go on with what was found before. Links in the name are expanded
// once, at the start, so that nobody can lead it elsewhere afterwards. Changes go to the log.
//
// The descriptors keep the file system busy, so those that nobody has wanted for a while are let go of; the next one who
// wants them looks. Where an opener opens files (opener_link.h), its word on whether the root is there counts as a look,
// and none of the daemon's own need be taken. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/fetch/open/root_name.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class RootFolder {
 public:
  using Clock = std::chrono::steady_clock;

  struct Opened {
    std::vector<UniqueFd> above;  // from "/" to its parent
    UniqueFd fd;
    struct stat status {};
  };

  enum class FirstLook : bool { kNow, kWhenWanted };

  // kWhenWanted: until then it counts as there. REQUIRES: `configured` is absolute.
  RootFolder(const std::string& configured, Clock::duration look_every, FirstLook first = FirstLook::kNow);

  const std::string& configured() const { return name_.configured(); }
  std::optional<std::size_t> name_in(std::string_view path) const { return name_.length_in(path); }

  // As the last look found it, after another one if it is time; null: not there. Shared, because a walk goes on through
  // what it began with.
  std::shared_ptr<const Opened> opened() MILLRACE_EXCLUDES(mutex_);

  // What an opener found.
  void heard(bool there) MILLRACE_EXCLUDES(mutex_);

  // Lets go of what nobody has wanted since `since`. Whether it holds anything still.
  bool let_go_unless_wanted(Clock::time_point since) MILLRACE_EXCLUDES(mutex_);

  // Whether the last look found nothing. Takes none.
  bool missing() const MILLRACE_EXCLUDES(mutex_);

  // A look that nobody remembers. The error names the root and says why it cannot be opened.
  static Result<void> look_for(const std::string& configured);

 private:
  class Turn;

  static Result<Opened> open_anew(const RootName& name);
  void settle(Result<Opened> found) MILLRACE_EXCLUDES(mutex_);
  void take(Opened found) MILLRACE_REQUIRES(mutex_);

  const RootName name_;
  const Clock::duration look_every_;
  mutable Mutex mutex_;
  // null: not there, or let go of.
  std::shared_ptr<const Opened> opened_ MILLRACE_GUARDED_BY(mutex_);
  bool there_ MILLRACE_GUARDED_BY(mutex_) = true;
  std::optional<std::pair<dev_t, ino_t>> found_ MILLRACE_GUARDED_BY(mutex_);  // by the last look that found something
  Clock::time_point wanted_ MILLRACE_GUARDED_BY(mutex_);
  Clock::time_point looked_ MILLRACE_GUARDED_BY(mutex_);
  bool looking_ MILLRACE_GUARDED_BY(mutex_) = false;
};

using RootList = std::vector<std::shared_ptr<RootFolder>>;  // shared by one list and the next
using RootFolders = std::shared_ptr<const RootList>;        // shared with threads at it when others come into force

}  // namespace millrace
