// The threads that list folder trees: one for each root, so that a file server that does not answer holds up what is
// beneath that root alone, and one for what is beneath none. A root's is started when somebody first lists there, and
// stays. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "daemon/fetch/list/listing_thread.h"

namespace millrace {

class ListingThreads {
 public:
  static constexpr std::size_t kMost = 64;    // roots with a thread of their own; others share that of no root
  static constexpr std::size_t kForRoot = 2;  // threads that may list beneath one root: its own, and that of no root

  // `roots` outlives it.
  explicit ListingThreads(const Roots& roots) : roots_(roots), of_no_root_(roots, "mr-list") {}

  // As FolderLister::try_list(). false: that user has many waiting.
  [[nodiscard]] bool try_list(ListTask&& task) MILLRACE_EXCLUDES(mutex_);

 private:
  ListingThread& thread_for(const std::string& path_untrusted) MILLRACE_EXCLUDES(mutex_);

  const Roots& roots_;
  ListingThread of_no_root_;
  Mutex mutex_;
  // By the root's configured name. None is taken out before this goes.
  std::unordered_map<std::string, std::unique_ptr<ListingThread>> of_roots_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
