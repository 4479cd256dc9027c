// What makes datasets, as a session asks for it, without waiting for it: of folder trees, each listed by its caller's
// rights, and of files that a client listed itself. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/caller.h"
#include "daemon/model/files/dataset.h"
#include "daemon/model/files/file_choice.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/result.h"

namespace millrace {

// Samples that are parts of files, which are numbered from 0 in the order of their paths, through all of a list.
struct RangesInFiles {
  std::vector<std::uint32_t> files;             // of each sample
  std::vector<std::uint64_t> offsets, lengths;  // likewise, as Dataset::Range has them
  std::vector<Dataset::Stamp> stamps = {};      // of each path that came with them; or none

  Bytes memory() const {
    return {files.capacity() * sizeof(std::uint32_t) +
            (offsets.capacity() + lengths.capacity()) * sizeof(std::uint64_t) +
            stamps.capacity() * sizeof(Dataset::Stamp)};
  }
};

// Some of the samples that a client lists itself, beneath the folder that goes with them.
struct FilesPart {
  std::string paths_untrusted;                         // one after the other, each with a zero byte after it
  std::vector<std::int64_t> labels;                    // as many as samples; or none: all are -1
  std::optional<RangesInFiles> ranges_untrusted = {};  // nullopt: every path is a sample

  Bytes memory() const {  // with what the heap takes beside it
    constexpr std::uint64_t kOfHeap = 64;
    return Bytes{sizeof *this + kOfHeap + paths_untrusted.capacity() + labels.capacity() * sizeof(std::int64_t)} +
           (ranges_untrusted ? ranges_untrusted->memory() : Bytes{});
  }
};

// The dataset's root is the path as given.
struct ListTask {
  std::string path_untrusted;
  std::vector<FilesPart> files = {};  // not empty: these beneath that path, and nothing is looked for there
  FileChoice choice = {};
  std::shared_ptr<const Caller> caller;                     // whose rights apply. Shared by the session's tasks
  std::shared_ptr<const StopFlag> stop;                     // shared with the caller; stopped: it ends as kCancelled
  std::uint64_t max_files = 0;                              // of a folder: `files` are counted as they come
  std::function<void(std::uint64_t)> progress = {};         // files so far; may be empty. Not for `files`
  std::function<Result<void>(Bytes)> room = {};             // what it takes by now; an error ends it. May be empty
  std::function<void(std::chrono::nanoseconds)> took = {};  // CPU time of the thread, before `done`; may be empty
  std::function<void(Result<std::shared_ptr<const Dataset>>)> done;
};

class FolderLister {
 public:
  virtual ~FolderLister() = default;

  // `progress`, `room`, `took`, and then `done`, exactly once, are called on a thread of the lister's, and must not block. false: too
  // many are queued (a state; try again when one is done); `task` is then left as it was.
  [[nodiscard]] virtual bool try_list(ListTask&& task) = 0;
};

}  // namespace millrace
