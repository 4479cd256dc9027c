// What lists folder trees, as a session asks for it: each by its caller's rights, without waiting for it. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "daemon/model/caller.h"
#include "daemon/model/dataset.h"
#include "daemon/model/file_choice.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/result.h"

namespace millrace {

// The dataset's root is the path as given.
struct ListTask {
  std::string path_untrusted;
  FileChoice choice;
  std::shared_ptr<const Caller> caller;  // whose rights apply. Shared by the session's tasks
  std::shared_ptr<const StopFlag> stop;  // shared with whoever asks; stopped: it ends as kCancelled
  std::uint64_t max_files = 0;
  std::function<void(std::uint64_t)> progress;  // files so far; may be empty
  std::function<Result<void>(Bytes)> room;      // what it takes by now; an error ends it. May be empty
  std::function<void(Result<std::shared_ptr<const Dataset>>)> done;
};

class FolderLister {
 public:
  virtual ~FolderLister() = default;

  // `progress`, `room`, and then `done`, exactly once, are called on a thread of the lister's, and must not block. false: too
  // many are queued (a state; try again when one is done); `task` is then left as it was.
  [[nodiscard]] virtual bool try_list(ListTask&& task) = 0;
};

}  // namespace millrace
