// millrace convert: a folder as packed or L3 files, and back. Needs no daemon.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "client/cli/command.h"
#include "client/cli/convert/convert_report.h"
#include "client/cli/convert/converter.h"
#include "client/cli/convert/names.h"
#include "client/cli/convert/tree.h"
#include "client/cli/folder.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "proto/base/mutex.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

const std::map<std::string, const TargetRow*> kTo = [] {
  std::map<std::string, const TargetRow*> rows;
  for (const TargetRow& row : target_rows()) rows.emplace(row.name, &row);
  return rows;
}();

struct ConvertOptions {
  std::string to = "packed", from, into, effort = "best", version = "2";
  std::uint32_t jobs = 0;  // 0: one a processor
  bool delete_converted = false;
  bool json = false;
  bool verbose = false;  // names all copied files
};

constexpr const char* kConvertFooter =
    "Packed files (.mrp): --to packed and --to jpeg. A packed file holds a JPEG file's coefficients without loss, so "
    "that the daemon decodes it several times as fast from the first epoch on. It holds all else of the JPEG file as "
    "well, so that --to jpeg gives the very same bytes. Each packed file is turned back and compared before it counts. "
    "What cannot be packed and come back (PNG, WebP, progressive or damaged JPEG, JPEG of rare kinds) is copied as it "
    "is. Packed files have some 1.2 times the bytes of photographs' files, and up to 2.3 times those of strongly "
    "compressed ones.\n\n"
    "L3 files (.l3): --to l3 and --to png. An L3 file holds the pixels of a PNG, PNM, BMP, TIFF or lossless WebP file "
    "without loss, in tiles that decode many times as fast as PNG: all channels, 8 and 16 bits, palettes, orientation. "
    "Grey of 1, 2 or 4 bits becomes 8. Each L3 file is decoded again and every sample compared before it counts. "
    "--to png gives these pixels as PNG, not the bytes of the file that there was. EXIF, ICC profiles and XMP of PNG "
    "and "
    "WebP are kept, of TIFF its ICC profile, XMP and orientation. Other metadata is dropped: texts, times, gamma, "
    "resolution. What L3 does not hold is copied as it is: CMYK, floating point, more than 16 bits or 4 channels, "
    "animations, lossy WebP, PNG with one transparent colour. A damaged file is named and passed over, and the status "
    "is 1. Files of --version 1 are for the decoder of the format's authors: RGB of 8 bits, upright, sides that are "
    "multiples of 64, without metadata and checksums.\n\n"
    "Folders and names stay, but for the ending. Copied files are named with the reason: ten of each, or all with "
    "--verbose. Nothing is written over. After Ctrl-C, or when the disk was full, the same command goes on where it "
    "was: what is there is compared, not made again. A folder that cannot be read is named and passed over, and the "
    "status is 1. Links are followed. --delete deletes none whose target is still there, nor anything that only a link "
    "leads to; folders that it emptied go. Needs no daemon.\n\n"
    "Examples:\n"
    "  millrace convert --to packed /data/train /data/train-packed\n"
    "  millrace run --private --dataset /data/train-packed --shuffle\n"
    "  millrace convert --to jpeg /data/train-packed /data/train-again\n"
    "  millrace convert --to l3 /data/scans /data/scans-l3\n"
    "  millrace convert --to png /data/scans-l3 /data/scans-again\n"
    "  millrace convert --to packed --delete old new      each source goes once its packed file was read back from "
    "disk";

// The folder that is filled belongs to one run at a time. Thread-bound(its owner).
class FolderLock {
 public:
  static Result<FolderLock> take(const std::string& folder) {
    const std::string path = folder + '/' + std::string(kOwnPrefix) + "-lock";
    UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return errno_error("writing into " + folder, errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{Code::kPrecondition, folder + ": another `millrace convert` is filling it"};
    return FolderLock(std::move(file), path);
  }
  ~FolderLock() {
    if (file_) ::unlink(path_.c_str());
  }
  FolderLock(FolderLock&&) = default;

 private:
  FolderLock(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  UniqueFd file_;
  std::string path_;
};

std::uint32_t usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&usable));
  return std::max(1U, std::thread::hardware_concurrency());
}

// Files of a tree to several threads, and what became of them to one. Thread-safe.
class Work {
 public:
  // Files `from` to `end`.
  Work(const ConvertPlan& plan, const Tree& tree, std::size_t from, std::size_t end)
      : plan_(plan), tree_(tree), end_(end), next_(from) {}

  void work() {
    Converter converter(plan_);
    while (!interrupted() && !stopped_.load()) {
      const std::size_t at = next_.fetch_add(1);
      if (at >= end_) return;
      const TreeFile& file = tree_.files[at];
      Converted done = converter.convert(tree_.folders[file.folder], file);
      if (done.became == Became::kStopped) stopped_ = true;
      const MutexLock lock(mutex_);
      done_.push_back({at, std::move(done)});
    }
  }

  struct Done {
    std::size_t file;
    Converted converted;
  };
  std::vector<Done> take_done() MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(done_, {});
  }

 private:
  const ConvertPlan& plan_;
  const Tree& tree_;
  const std::size_t end_;
  std::atomic<std::size_t> next_;     // writers: the threads; what it counts is read-only
  std::atomic<bool> stopped_{false};  // writers: the threads; no data comes with it
  Mutex mutex_;
  std::vector<Done> done_ MILLRACE_GUARDED_BY(mutex_);
};

// A conversion under way. Thread-bound(its owner).
class Conversion {
 public:
  Conversion(const ConvertOptions& options, const ConvertPlan& plan)
      : options_(options),
        plan_(plan),
        progress_(progress_style(options.json)),
        report_(plan.to, options.verbose ? ConvertReport::Naming::kAll : ConvertReport::Naming::kSome) {}

  Result<void> run() {
    MILLRACE_TRY(tree_, read_tree(plan_.from));
    for (const UnreadableFolder& folder : tree_.unreadable) report_.add_unreadable(folder, progress_);
    if (tree_.files.empty())
      return Error{Code::kNotFound, options_.from + (tree_.unreadable.empty() ? ": no files in it"
                                                                              : ": no files in it that can be read")};
    MILLRACE_TRY(const FolderLock lock, FolderLock::take(plan_.into));
    for (const TreeFolder& folder : tree_.folders) {
      std::error_code failed;
      const std::string path = joined(plan_.into, folder.path);
      fs::create_directory(path, failed);
      if (failed) return errno_error("writing " + path, failed.value());
    }
    began_ = Clock::now();
    // Links have their turn before what they lead to may be deleted.
    const auto first = std::ranges::find(tree_.files, false, &TreeFile::by_link);
    const auto links = static_cast<std::size_t>(first - tree_.files.begin());
    work_on(0, links);
    if (!error_ && !interrupted()) work_on(links, tree_.files.size());
    if (plan_.delete_converted && !error_ && !interrupted() && report_.failed() + report_.unreadable() == 0)
      report_.removed(remove_what_is_left(plan_.from, tree_));
    progress_.clear();
    report_.finish();
    if (error_) return *error_;
    return {};
  }

  const ConvertReport& report() const { return report_; }
  std::chrono::duration<double> elapsed() const { return Clock::now() - began_; }
  std::size_t odd() const { return tree_.odd; }

 private:
  void work_on(std::size_t from, std::size_t end) {
    if (from == end) return;
    Work work(plan_, tree_, from, end);
    const std::uint32_t jobs = options_.jobs != 0 ? options_.jobs : usable_processors();
    std::atomic<std::uint32_t> busy{jobs};  // writers: the threads, when they end
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < jobs; ++i) {
      threads.emplace_back([&] {
        work.work();
        busy.fetch_sub(1);
      });
    }
    while (busy.load() > 0) {
      take(work);
      wait_unless_interrupted(std::chrono::milliseconds(20));
      if (interrupted()) break;
    }
    threads.clear();
    take(work);
  }

  void take(Work& work) {
    for (const Work::Done& done : work.take_done()) {
      const TreeFile& file = tree_.files[done.file];
      report_.add(joined(tree_.folders[file.folder].path, file.name), done.converted, progress_);
      if (done.converted.became == Became::kStopped && !done.converted.error.message.empty())
        error_ = done.converted.error;
    }
    progress_.update({.title = plan_.to.words.doing,
                      .done = report_.done(),
                      .total = tree_.files.size(),
                      .bad = report_.failed(),
                      .elapsed = elapsed()});
  }

  const ConvertOptions& options_;
  const ConvertPlan& plan_;
  Progress progress_;
  ConvertReport report_;
  Tree tree_;
  Clock::time_point began_ = Clock::now();
  std::optional<Error> error_;  // that ended it
};

// The folder to be filled, which is made if it is not there.
Result<std::string> folder_to_fill(const std::string& from, const std::string& into) {
  std::error_code failed;
  const fs::path planned = fs::weakly_canonical(into, failed);
  if (failed) return errno_error(into, failed.value());
  if (planned == from || planned.string().starts_with(from + '/'))
    return Error{Code::kInvalid, into + " lies in the folder that is to be converted: name another"};
  fs::create_directories(planned, failed);
  if (failed) return errno_error("making " + into, failed.value());
  return canonical_folder("", into);
}

int convert(const ConvertOptions& options) {
  const Result<std::string> from = canonical_folder("", options.from);
  if (!from) return std::fprintf(stderr, "millrace: %s\n", printable(from.error().message).c_str()), kFailed;
  const Result<std::string> into = folder_to_fill(*from, options.into);
  if (!into) return std::fprintf(stderr, "millrace: %s\n", printable(into.error().message).c_str()), kFailed;
  watch_for_interrupt();
  const ConvertPlan plan{.to = *kTo.at(options.to),
                         .options = {.fast = options.effort == "fast", .version1 = options.version == "1"},
                         .from = *from,
                         .into = *into,
                         .delete_converted = options.delete_converted};
  Conversion conversion(options, plan);
  const Result<void> ended = conversion.run();
  if (conversion.report().done() + conversion.report().failed() > 0) {
    options.json ? conversion.report().print_json(conversion.elapsed(), conversion.odd())
                 : conversion.report().print_text(conversion.elapsed(), conversion.odd());
    std::fflush(stdout);
  }
  if (!ended) return std::fprintf(stderr, "millrace: %s\n", printable(ended.error().message).c_str()), kFailed;
  if (interrupted()) return std::fputs("millrace: interrupted; the same command goes on\n", stderr), kInterrupted;
  return conversion.report().failed() + conversion.report().unreadable() == 0 ? kFine : kFailed;
}

}  // namespace

void add_convert(Command app, Chosen& chosen) {
  auto options = std::make_shared<ConvertOptions>();  // shared with the callback
  const Command command = app.subcommand("convert", "A folder of pictures as packed or L3 files, and back.");
  command.option("--to", options->to, "what files are to become")
      .required()
      .check(one_of(kTo))
      .type_name("packed|jpeg|l3|png");
  command.option("folder", options->from, "the folder with the files").required().check(not_empty());
  command.option("out", options->into, "the folder to fill; made if it is not there").required().check(not_empty());
  command.option("--effort", options->effort, "of --to l3: fast tries less, and makes larger files")
      .check(one_of({"fast", "best"}))
      .type_name("fast|best")
      .show_default();
  command.option("--version", options->version, "of --to l3: of the format; 1 is for its authors' decoder")
      .check(one_of({"1", "2"}))
      .type_name("1|2")
      .show_default();
  command.option("--jobs", options->jobs, "files at a time (default: one a processor)").check(whole_number(1, 1024));
  command.flag(
      "--delete", options->delete_converted,
      "delete each source once what became of it, or its copy, was read back and compared, and folders that are empty "
      "then");
  command.flag("--verbose", options->verbose, "name all files that were copied, not ten of each reason");
  command.flag("--json", options->json, "print one JSON object at the end");
  command.footer(kConvertFooter);
  command.callback([options, command, &chosen] {
    for (const char* name : {"--effort", "--version"}) {
      if (options->to != "l3" && command.has(name)) reject(name, "belongs to --to l3");
    }
    if (options->version == "1" && command.has("--effort")) reject("--effort", "belongs to --version 2");
    chosen = [options] { return convert(*options); };
  });
}

}  // namespace millrace::cli
