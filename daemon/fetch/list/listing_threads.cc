#include "daemon/fetch/list/listing_threads.h"

#include <optional>
#include <system_error>
#include <utility>

namespace millrace {

bool ListingThreads::try_list(ListTask&& task) {
  if (!task.files.empty()) return of_no_root_.try_list(std::move(task));  // no file system is asked
  return thread_for(task.path_untrusted).try_list(std::move(task));
}

ListingThread& ListingThreads::thread_for(const std::string& path_untrusted) {
  const std::optional<std::string> root = roots_.root_of(path_untrusted);
  if (!root) return of_no_root_;
  MutexLock lock(mutex_);
  if (const auto found = of_roots_.find(*root); found != of_roots_.end()) return *found->second;
  if (of_roots_.size() >= kMost) return of_no_root_;
  try {
    auto thread = std::make_unique<ListingThread>(roots_, "mr-list-" + std::to_string(of_roots_.size()));
    return *of_roots_.emplace(*root, std::move(thread)).first->second;
  } catch (const std::system_error&) {
    return of_no_root_;  // the process can have no further thread
  }
}

}  // namespace millrace
