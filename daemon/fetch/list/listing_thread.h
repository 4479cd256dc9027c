// A thread that lists folder trees, which take turns on it a step at a time: by user, so that nobody waits for all that
// another has asked for, then a user's own by each other. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "daemon/fetch/open/roots.h"
#include "daemon/model/files/folder_lister.h"
#include "proto/base/ids.h"
#include "proto/base/mutex.h"

namespace millrace {

class ListingThread {
 public:
  static constexpr std::size_t kMostWaiting = 64;  // of one user's
  // Under way at once: each holds a descriptor for every folder that it is in. A user who has none begins one beyond
  // kInTurns.
  static constexpr std::size_t kInTurns = 8, kInTurnsOfUser = 4, kMostInTurns = 16;

  // `roots` outlives it. Throws std::system_error when the process can have no further thread.
  ListingThread(const Roots& roots, const std::string& name);
  ~ListingThread();  // ends everything as kCancelled, and joins, once the step that is under way has ended

  // As FolderLister::try_list(). false: so many of that user's are waiting.
  [[nodiscard]] bool try_list(ListTask&& task) MILLRACE_EXCLUDES(mutex_);

 private:
  struct UnderWay;

  void run();
  bool begin_some(std::deque<UnderWay>& under_way);
  std::optional<ListTask> next_to_begin(const std::deque<UnderWay>& under_way) MILLRACE_EXCLUDES(mutex_);
  void wait_for_work() MILLRACE_EXCLUDES(mutex_);
  bool wait_while_idle(bool holds_roots) MILLRACE_EXCLUDES(mutex_);

  const Roots& roots_;
  // Writer: the destructor. Reader: the thread, between steps. Publishes nothing but itself.
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  Condition ready_;
  std::map<UserId, std::deque<ListTask>> waiting_ MILLRACE_GUARDED_BY(mutex_);  // none of them is empty
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace millrace
