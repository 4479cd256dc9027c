#include "daemon/fetch/list/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "daemon/fetch/host_shortage.h"
#include "daemon/fetch/open/open_at.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kDeepest = 128;  // folders: each is an open descriptor
constexpr std::uint64_t kProgressStep = 10'000, kRoomStep = 1'000;
constexpr std::size_t kNameOnHeap = 48;  // of an entry, at the most for ordinary names

bool stopped(const std::shared_ptr<const StopFlag>& stop) {
  return stop && stop->stopped();
}

Error at_folder(const Error& error, const std::string& relative) {
  const std::string name = "folder \"" + printable(relative) + "\"";
  if (error.message != not_readable().message) return error.within(name);
  return Error{Code::kDenied,
               name + " of the dataset is not readable by you; make it readable, or move it out of the dataset"};
}

// What the disk says of a folder, with the folder's name; what the daemon lacks is nobody's.
Error in_folder(const Error& error, std::string_view relative) {
  return error.code == Code::kInternal ? error.within("folder \"" + printable(relative) + "\"") : error;
}

}  // namespace

std::uint64_t fingerprint_with(std::uint64_t fingerprint, std::string_view path) {
  constexpr std::uint64_t kPrime = 0x100000001B3;
  for (const char letter : path) fingerprint = (fingerprint ^ static_cast<unsigned char>(letter)) * kPrime;
  return fingerprint * kPrime;
}

// The finaliser of SplitMix64 after each word, which loses nothing of one.
DatasetNumber dataset_number(std::uint64_t device, std::uint64_t inode) {
  const auto mixed = [](std::uint64_t word) {
    word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27U)) * 0x94D049BB133111EB;
    return word ^ (word >> 31U);
  };
  const auto number = DatasetNumber{mixed(mixed(device + 0x9E3779B97F4A7C15) ^ inode)};
  return number == DatasetNumber::kNone ? DatasetNumber{1} : number;
}

Listing::Listing(const Roots& roots, Request request)
    : roots_(roots), request_(std::move(request)), root_(request_.path_untrusted), fingerprint_(kFingerprintSeed) {
  while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
}

std::optional<Listing::Outcome> Listing::step() {
  try {
    if (stopped(request_.stop)) return Error{Code::kCancelled, "the listing was cancelled"};
    done_ = 0;
    if (Result<void> done = advance(); !done)
      return done.error().code == Code::kCancelled ? done.error() : done.error().within(printable(root_));
    if (!frames_.empty()) return std::nullopt;
    return finish();
  } catch (const std::bad_alloc&) {
    return Error{Code::kUnavailable, "no memory to list more than " + std::to_string(files_) + " files"};
  }
}

Result<void> Listing::advance() {
  if (begun_) return go_on();
  begun_ = true;
  MILLRACE_TRY_VOID(open_top());
  return read_on();
}

Result<void> Listing::open_top() {
  Frame top;
  Result<UniqueFd> opened = roots_.open_folder(request_.path_untrusted, *request_.caller);
  if (!opened) return roots_.with_roots(std::move(opened).error());
  top.fd = *std::move(opened);
  if (fstat(top.fd.get(), &top.status) != 0) return io_error("opening the folder", errno);
  number_ = dataset_number(top.status.st_dev, top.status.st_ino);
  MILLRACE_TRY_VOID(begin_reading(top));
  frames_.push_back(std::move(top));
  return {};
}

// What a folder still holds, or the files up to the next folder, and what that holds; or the way back up.
Result<void> Listing::go_on() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    prefix_.resize(frame.prefix);
    if (frame.reading || done_ >= kStep) return read_on();
    if (frame.next == frame.entries.size()) {
      if (frames_.size() <= 2) settle();
      frames_.pop_back();
      continue;
    }
    const Entry entry = std::move(frame.entries[frame.next++]);
    const std::int32_t label = frames_.size() == 1 ? entry.label : frame.label;
    if (entry.is_folder()) {
      MILLRACE_TRY_VOID(open_folder(entry, label));
      return read_on();
    }
    add_file(frame, entry, label);
    ++done_;
  }
  return {};
}

Result<void> Listing::open_folder(const Entry& entry, std::int32_t label) {
  const std::string relative = prefix_ + std::string(entry.bare());
  if (frames_.size() == kDeepest)
    return Error{Code::kInvalid,
                 "folder \"" + printable(relative) + "\" is more than " + std::to_string(kDeepest) + " folders deep"};
  ++folders_;
  MILLRACE_TRY_VOID(check_room());
  Result<UniqueFd> fd = open_entry(entry);
  if (!fd) return at_folder(fd.error(), relative);
  Frame frame{.fd = *std::move(fd), .prefix = prefix_.size() + entry.name.size(), .label = label};
  if (fstat(frame.fd.get(), &frame.status) != 0) return io_error("opening the folder", errno);
  const auto same = [&](const Frame& above) {
    return above.status.st_dev == frame.status.st_dev && above.status.st_ino == frame.status.st_ino;
  };
  if (std::any_of(frames_.begin(), frames_.end(), same))
    return {};  // a link to a folder that holds it: all of it is listed already
  prefix_ += entry.name;
  if (const Result<void> begun = begin_reading(frame); !begun) return in_folder(begun.error(), relative);
  frames_.push_back(std::move(frame));
  return {};
}

Result<UniqueFd> Listing::open_entry(const Entry& entry) {
  const std::string name(entry.bare());
  const Caller& caller = *request_.caller;
  if (entry.link || roots_.by_opener(caller)) return roots_.open_folder(root_ + "/" + prefix_ + name, caller);
  const UniqueFd found(openat(frames_.back().fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!found || fstat(found.get(), &status) != 0)
    return errno == EACCES ? refused_to_daemon(caller) : io_error("opening it", errno);
  if (!roots_.rights().may_list(caller, found.get(), status)) return not_readable();
  UniqueFd fd = reopen(found.get(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  if (!fd) return errno == EACCES ? refused_to_daemon(caller) : io_error("opening it", errno);
  return fd;
}

Result<void> Listing::begin_reading(Frame& frame) {
  UniqueFd own(fcntl(frame.fd.get(), F_DUPFD_CLOEXEC, 0));
  frame.reading.reset(own ? fdopendir(own.get()) : nullptr);
  if (!frame.reading) return io_error("reading a folder", errno);
  own.release();
  return {};
}

// More of the folder where the listing is, if that is being read.
Result<void> Listing::read_on() {
  if (frames_.empty() || !frames_.back().reading) return {};
  Result<void> read = read_entries(frames_.back());
  if (read || frames_.size() == 1) return read;
  return in_folder(read.error(), std::string_view(prefix_).substr(0, prefix_.size() - 1));
}

// As much as the step has left; sorted once it is all.
Result<void> Listing::read_entries(Frame& frame) {
  while (true) {
    if (done_ >= kStep) return {};
    errno = 0;
    const dirent* found = readdir(frame.reading.get());
    if (found == nullptr) break;
    ++done_;
    if (found->d_name[0] == '.') continue;
    if (stopped(request_.stop)) return Error{Code::kCancelled, "the listing was cancelled"};
    MILLRACE_TRY(std::optional<Entry> entry, classify(frame, found->d_name, found->d_type));
    if (!entry) continue;
    if (!entry->is_folder()) count_file();
    MILLRACE_TRY_VOID(check_room());
    frame.entries.push_back(*std::move(entry));
  }
  if (errno != 0) return io_error("reading a folder", errno);
  frame.reading.reset();
  std::sort(frame.entries.begin(), frame.entries.end());
  if (&frame != &frames_.front()) return {};
  name_classes(frame);
  if (request_.choice.unclassified == Unclassified::kSkipped) skip_unclassified(frame);
  return {};
}

// nullopt: nothing to list.
Result<std::optional<Listing::Entry>> Listing::classify(const Frame& frame, const char* name, unsigned char type) {
  if (type == DT_UNKNOWN) {
    struct stat status {};
    if (fstatat(frame.fd.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOMEM) return io_error("looking at an entry", errno);
      return std::optional<Entry>{};  // gone again
    }
    type = static_cast<unsigned char>(IFTODT(status.st_mode));
  }
  if (type == DT_DIR) return std::optional(Entry{std::string(name) + "/"});
  if (type == DT_REG) return chosen(name, false);
  if (type == DT_LNK) {
    done_ += kLinkCounts;
    return classify_link(name);
  }
  return std::optional<Entry>{};
}

Result<std::optional<Listing::Entry>> Listing::classify_link(const std::string& name) {
  const Result<mode_t> target = roots_.type_of(root_ + "/" + prefix_ + name, *request_.caller);
  if (!target && target.error().code == Code::kUnavailable) return target.error();  // what it is remains unknown
  if (target && S_ISDIR(*target)) return std::optional(Entry{name + "/", true});
  if (target && S_ISREG(*target)) return chosen(name, true);
  if (!target && wanted(name)) return std::optional(Entry{name, true});
  if (target || target.error().message == no_such_file().message) return std::optional<Entry>{};
  if (target.error().code != Code::kDenied) return target.error().within("link \"" + printable(prefix_ + name) + "\"");
  return Error{Code::kDenied,
               "the link \"" + printable(prefix_ + name) +
                   "\" leads where you may not read, or out of the daemon's roots; move it out of the dataset"};
}

Result<void> Listing::check_room() {
  const std::uint64_t found = files_ + folders_;
  if (request_.room && found >= measured_at_ + kRoomStep) {
    measured_at_ = found;
    MILLRACE_TRY_VOID(request_.room(memory()));
  }
  if (found <= request_.max_files) return {};
  return Error{Code::kExhausted,
               "more than " + std::to_string(request_.max_files) +
                   " files and folders: open a smaller folder, or raise limits.dataset_files in the daemon's settings"};
}

Bytes Listing::memory() const {
  std::uint64_t bytes =
      paths_.capacity() + entries_.capacity() * sizeof(Dataset::Entry) + runs_.capacity() * sizeof(Run);
  bytes += classes_.size() * (sizeof(std::string) + kNameOnHeap);
  for (const Frame& frame : frames_) bytes += frame.entries.capacity() * (sizeof(Entry) + kNameOnHeap);
  return {bytes};
}

std::optional<Listing::Entry> Listing::chosen(const std::string& name, bool link) {
  if (wanted(name)) return Entry{name, link};
  skipped_.not_asked(prefix_ + name);
  return std::nullopt;
}

void Listing::count_file() {
  ++files_;
  if (files_ % kProgressStep == 0 && request_.progress) request_.progress(files_);
}

void Listing::add_file(const Frame& frame, const Entry& entry, std::int32_t label) {
  const std::string path = prefix_ + entry.name;
  if (frame.next == 1) runs_.push_back(Run{entries_.size(), 0, prefix_.size()});
  ++runs_.back().files;
  entries_.emplace_back(paths_.size(), path.size(), label);
  paths_ += path;
}

// Puts a class in order: its folders were found one inside the other, and are sorted by their paths as a whole.
void Listing::settle() {
  if (runs_.empty()) return;
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(runs_.front().first);
  const auto earlier = [this](const Run& a, const Run& b) { return folder_of(a) < folder_of(b); };
  if (!std::is_sorted(runs_.begin(), runs_.end(), earlier)) {
    const std::vector<Dataset::Entry> found(first, entries_.end());
    const std::size_t before = runs_.front().first;
    std::sort(runs_.begin(), runs_.end(), earlier);
    auto to = first;
    for (const Run& run : runs_)
      to = std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(run.first - before), run.files, to);
  }
  for (auto entry = first; entry != entries_.end(); ++entry)
    fingerprint_ =
        fingerprint_with(fingerprint_, std::string_view(paths_).substr(entry->path_offset, entry->path_bytes));
  runs_.clear();
}

// Without the slash at its end, which would come after a '-'.
std::string_view Listing::folder_of(const Run& run) const {
  const std::size_t bytes = run.folder_bytes == 0 ? 0 : run.folder_bytes - 1;
  return std::string_view(paths_).substr(entries_[run.first].path_offset, bytes);
}

void Listing::skip_unclassified(Frame& top) {
  if (classes_.empty()) return;
  const auto loose = [&](const Entry& entry) {
    if (entry.is_folder()) return false;
    skipped_.unclassified(entry.name);
    return true;
  };
  files_ -= std::erase_if(top.entries, loose);
}

// They are in order already.
void Listing::name_classes(Frame& top) {
  for (Entry& entry : top.entries) {
    if (!entry.is_folder()) continue;
    entry.label = static_cast<std::int32_t>(classes_.size());
    classes_.emplace_back(entry.bare());
  }
}

bool Listing::wanted(std::string_view name) const {
  const std::vector<std::string>& extensions = request_.choice.extensions;
  if (extensions.empty()) return true;
  const std::string extension = extension_of(name);
  return !extension.empty() && std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

Listing::Outcome Listing::finish() {
  if (entries_.empty()) {
    std::string of;
    for (const std::string& extension : request_.choice.extensions)
      of += (of.empty() ? " of the extensions " : ", ") + printable(extension);
    return Error{Code::kNotFound, "the dataset is empty: no files" + of + " beneath it (hidden ones do not count)" +
                                      to_text(skipped_.told())}
        .within(printable(root_));
  }
  return std::shared_ptr<const Dataset>(
      std::make_shared<const Dataset>(std::move(root_), std::move(paths_), std::move(entries_), std::move(classes_),
                                      fingerprint_, skipped_.told(), Dataset::Parts{}, number_));
}

}  // namespace millrace
