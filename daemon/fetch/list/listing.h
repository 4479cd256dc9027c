// Lists a folder tree with a caller's rights, in steps of a folder or a part of a large one, so that several listings can
// take turns on one thread.
//
// Samples come in the order of model/files/dataset.h, classes are the folders directly beneath the top in byte order of their
// names. Hidden names (leading dot) are left out; symbolic links are followed, but for folders that hold
// themselves. Files that were not chosen are counted. A link that leads nowhere the caller may go is listed as a file
// if its extension is asked for, so that reading it reports it; else it may be a folder of samples, and the listing
// fails.
//
// Thread-bound(its owner).
#pragma once

#include <dirent.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fetch/list/skip_tally.h"
#include "daemon/fetch/open/roots.h"
#include "daemon/model/caller.h"
#include "daemon/model/files/dataset.h"
#include "daemon/model/files/file_choice.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/result.h"

namespace millrace {

class Listing {
 public:
  struct Request {
    std::string path_untrusted;
    FileChoice choice;
    std::shared_ptr<const Caller> caller;
    std::shared_ptr<const StopFlag> stop;
    std::uint64_t max_files = 0;                  // files and folders
    std::function<void(std::uint64_t)> progress;  // files so far; every 10,000
    std::function<Result<void>(Bytes)> room;      // what it takes by now, every 1,000 files; an error ends it
  };
  using Outcome = Result<std::shared_ptr<const Dataset>>;

  // What a step does at most: entries, of which a link counts as so many, for it is followed to its end. Sorting a folder,
  // and putting a class in order, are done at once.
  static constexpr std::uint32_t kStep = 1'024, kLinkCounts = 256;

  // `roots` outlives it.
  Listing(const Roots& roots, Request request);

  // Lists one more folder, or as much of it as kStep lets, and puts a class that ends there in order; an outcome once there is none left or something
  // is wrong: kDenied naming the folder, relative to the top, kNotFound (no samples; says what was skipped), kExhausted
  // (more than max_files, or no room), kUnavailable (the daemon lacks descriptors or memory), kCancelled. What is wrong with the
  // folder begins with its path. REQUIRES: no outcome yet.
  std::optional<Outcome> step();

 private:
  struct Entry {
    std::string name;  // of a folder: with a slash at the end
    bool link = false;
    std::int32_t label = -1;
    bool is_folder() const { return name.back() == '/'; }
    std::string_view bare() const { return std::string_view(name).substr(0, name.size() - (is_folder() ? 1 : 0)); }
    // Files before folders, so that a folder's files lie side by side in entries_.
    bool operator<(const Entry& other) const {
      return is_folder() != other.is_folder() ? other.is_folder() : bare() < other.bare();
    }
  };
  struct Run {  // the files of one folder
    std::size_t first, files;
    std::size_t folder_bytes;  // of their paths, with a slash at the end; 0: the top
  };
  struct CloseFolder {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  struct Frame {
    UniqueFd fd;
    std::unique_ptr<DIR, CloseFolder> reading = nullptr;  // null: all entries are known
    struct stat status {};
    std::vector<Entry> entries;
    std::size_t next = 0;
    std::size_t prefix = 0;  // of prefix_: the folder's own relative path, with a slash at the end
    std::int32_t label = -1;
  };

  Result<void> advance();
  Result<void> open_top();
  Result<void> go_on();
  Result<void> open_folder(const Entry& entry, std::int32_t label);
  Result<UniqueFd> open_entry(const Entry& entry);
  Result<void> begin_reading(Frame& frame);
  Result<void> read_entries(Frame& frame);
  Result<void> read_on();
  Result<std::optional<Entry>> classify(const Frame& frame, const char* name, unsigned char type);
  std::optional<Entry> chosen(const std::string& name, bool link);
  Result<std::optional<Entry>> classify_link(const std::string& name);
  Result<void> check_room();
  Bytes memory() const;
  void count_file();
  void add_file(const Frame& frame, const Entry& entry, std::int32_t label);
  void settle();
  std::string_view folder_of(const Run& run) const;
  void name_classes(Frame& top);
  void skip_unclassified(Frame& top);
  bool wanted(std::string_view name) const;
  Outcome finish();

  const Roots& roots_;
  Request request_;
  std::string root_;
  std::string prefix_;
  std::vector<Frame> frames_;  // from the top down to where the listing is
  bool begun_ = false;
  std::uint32_t done_ = 0;  // in this step, of kStep
  std::uint64_t files_ = 0, folders_ = 0;
  std::uint64_t measured_at_ = 0;  // files and folders, when room() was last asked
  std::string paths_;
  std::vector<Dataset::Entry> entries_;
  std::vector<Run> runs_;  // of the class that is being listed, as they were found
  std::vector<std::string> classes_;
  SkipTally skipped_;
  std::uint64_t fingerprint_;
  DatasetNumber number_ = DatasetNumber::kNone;
};

// Of a folder by what the kernel tells it from others: the same for every caller, by whatever path.
DatasetNumber dataset_number(std::uint64_t device, std::uint64_t inode);

// FNV-1a, 64 bits, over every path and a zero byte after it: the same on every machine.
inline constexpr std::uint64_t kFingerprintSeed = 0xCBF29CE484222325;
std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::string_view path);

}  // namespace millrace
