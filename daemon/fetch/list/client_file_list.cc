#include "daemon/fetch/list/client_file_list.h"

#include <array>
#include <new>
#include <utility>

#include "daemon/fetch/list/listing.h"
#include "daemon/fetch/open/refusals.h"
#include "daemon/fetch/open/root_name.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::uint64_t kNoDevice = ~std::uint64_t{0};  // stands where a folder's device does

Error labels_unlike_paths() {
  return Error{Code::kInvalid, "labels: must be as many as paths"};
}

// Of its eight bytes, the lowest first: the same on every machine.
std::uint64_t with_number(std::uint64_t fingerprint, std::uint64_t number) {
  std::array<char, sizeof number> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> 8 * i & 0xFFU);
  return fingerprint_with(fingerprint, std::string_view(bytes.data(), bytes.size()));
}

std::string without_slash_at_the_end(std::string folder) {
  while (!folder.empty() && folder.back() == '/') folder.pop_back();
  return folder;
}

}  // namespace

ClientFileList::ClientFileList(const Roots& roots, ListTask task)
    : roots_(roots),
      task_(std::move(task)),
      folder_(without_slash_at_the_end(std::move(task_.path_untrusted))),
      fingerprint_(fingerprint_with(kFingerprintSeed, folder_)) {}

std::optional<ClientFileList::Outcome> ClientFileList::step() {
  try {
    if (task_.stop && task_.stop->stopped()) return Error{Code::kCancelled, "the listing was cancelled"};
    if (!std::exchange(begun_, true)) {
      if (Result<void> begun = begin(); !begun) return begun.error();
    }
    if (next_ == task_.files.size()) return finish();
    if (Result<void> taken = take(std::move(task_.files[next_])); !taken) return taken.error();
    ++next_;
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return Error{Code::kUnavailable, "no memory for a list of more than " + std::to_string(entries_.size()) + " files"};
  }
}

Result<void> ClientFileList::begin() {
  if (!folder_.empty() && !is_clean(folder_))
    return Error{Code::kInvalid, "folder: must be absolute, without empty components, \".\" and \"..\", is \"" +
                                     printable(folder_) + "\""};
  beneath_root_ = roots_.root_of(folder_.empty() ? "/" : folder_).has_value();
  full_ = folder_;
  std::uint64_t bytes = 0, with_ranges = 0;
  for (const FilesPart& part : task_.files) {
    bytes += part.paths_untrusted.size();
    if (part.ranges_untrusted) with_ranges += part.ranges_untrusted->files.size();
  }
  // Parts are let go of as they are taken, but not sooner than the system has that memory back.
  const Bytes of_ranges{with_ranges * (sizeof(Dataset::Entry) + sizeof(Dataset::Range))};
  if (task_.room) MILLRACE_TRY_VOID(task_.room(Bytes{2 * bytes} + of_ranges));
  paths_.reserve(bytes);
  entries_.reserve(with_ranges);
  samples_are_.ranges.reserve(with_ranges);
  return {};
}

Result<void> ClientFileList::take(FilesPart part) {
  const std::string_view paths = part.paths_untrusted;
  const bool are_samples = !part.ranges_untrusted.has_value();
  std::size_t number = 0;  // of the path, in this part
  for (std::size_t at = 0; at < paths.size(); ++number) {
    const std::size_t end = paths.find('\0', at);
    if (end == paths.npos) return Error{Code::kInvalid, "paths: no zero byte after the last one"};
    const std::string_view path = paths.substr(at, end - at);
    if (are_samples && !part.labels.empty() && number >= part.labels.size()) return labels_unlike_paths();
    const std::int64_t label = are_samples && !part.labels.empty() ? part.labels[number] : -1;
    MILLRACE_TRY_VOID(are_samples ? take_file(path, at, label) : take_known_file(path, at));
    at = end + 1;
  }
  if (are_samples && !part.labels.empty() && number != part.labels.size()) return labels_unlike_paths();
  if (!are_samples) {
    const std::vector<Dataset::Stamp>& stamps = part.ranges_untrusted->stamps;
    if (!stamps.empty() && stamps.size() != number) return Error{Code::kInvalid, "sizes: must be as many as paths"};
    for (std::size_t i = 0; i < stamps.size(); ++i)
      samples_are_.stamps.push_back({files_[files_.size() - number + i].path.path_offset, stamps[i]});
    MILLRACE_TRY_VOID(take_ranges(*part.ranges_untrusted, part.labels));
  }
  paths_ += paths;
  return task_.room ? task_.room(memory()) : Result<void>();
}

Result<void> ClientFileList::take_file(std::string_view path, std::size_t at, std::int64_t label) {
  MILLRACE_TRY_VOID(check(path, "sample", entries_.size()));
  entries_.emplace_back(paths_.size() + at, path.size(), label);
  fingerprint_ = fingerprint_with(fingerprint_, path);
  return {};
}

Result<void> ClientFileList::take_known_file(std::string_view path, std::size_t at) {
  MILLRACE_TRY_VOID(check(path, "file", files_.size()));
  files_.push_back({Dataset::Entry(paths_.size() + at, path.size(), -1), fingerprint_with(kFingerprintSeed, path)});
  return {};
}

Result<void> ClientFileList::take_ranges(const RangesInFiles& ranges, const std::vector<std::int64_t>& labels) {
  const std::size_t count = ranges.files.size();
  if (ranges.offsets.size() != count || ranges.lengths.size() != count || (!labels.empty() && labels.size() != count))
    return Error{Code::kInvalid, "files, offsets, lengths: must be as many, and as many labels or none"};
  for (std::size_t i = 0; i < count; ++i) {
    const Dataset::Range range{ranges.offsets[i], Bytes{ranges.lengths[i]}};
    const auto wrong = [&](const std::string& what) {
      return Error{Code::kInvalid, "sample " + std::to_string(entries_.size()) + ": " + what};
    };
    if (ranges.files[i] >= files_.size())
      return wrong("file " + std::to_string(ranges.files[i]) + " is none of the " + std::to_string(files_.size()) +
                   " files so far");
    if (!is_in_a_file(range))
      return wrong("offset + length must be below 2^63, are " + std::to_string(range.offset) + " + " +
                   std::to_string(range.length.count));
    const KnownFile& file = files_[ranges.files[i]];
    entries_.emplace_back(file.path.path_offset, file.path.path_bytes, labels.empty() ? -1 : labels[i]);
    samples_are_.ranges.push_back(range);
    for (const std::uint64_t number : {file.fingerprint, range.offset, range.length.count})
      fingerprint_ = with_number(fingerprint_, number);
  }
  return {};
}

Bytes ClientFileList::memory() const {
  return {paths_.capacity() + entries_.capacity() * sizeof(Dataset::Entry) +
          samples_are_.ranges.capacity() * sizeof(Dataset::Range) + files_.capacity() * sizeof(KnownFile) +
          samples_are_.stamps.capacity() * sizeof(Dataset::StampedFile)};
}

Result<void> ClientFileList::check(std::string_view path, std::string_view what, std::size_t number) {
  const auto name = [&] { return std::string(what) + ' ' + std::to_string(number) + ' ' + name_of(path); };
  if (path.empty() || path.size() > kLongestPath)
    return Error{Code::kInvalid, name() + " must have 1 to " + std::to_string(kLongestPath) + " bytes"};
  full_.resize(folder_.size());
  full_ += '/';
  full_ += path;
  if (!is_clean(std::string_view(full_).substr(folder_.size())))
    return Error{Code::kInvalid, name() + " must be without empty components, \".\" and \"..\""};
  if (beneath_root_ || roots_.root_of(full_)) return {};
  return roots_.with_roots(not_readable()).within(name());
}

std::string ClientFileList::name_of(std::string_view path) const {
  return '"' + printable(folder_) + '/' + printable(path.substr(0, kLongestPath)) + '"';
}

ClientFileList::Outcome ClientFileList::finish() {
  if (entries_.empty()) return Error{Code::kNotFound, "the list is empty: a dataset needs a file"};
  entries_.shrink_to_fit();
  samples_are_.stamps.shrink_to_fit();
  return std::shared_ptr<const Dataset>(std::make_shared<const Dataset>(
      std::move(folder_), std::move(paths_), std::move(entries_), std::vector<std::string>{}, fingerprint_, Skipped{},
      std::move(samples_are_), dataset_number(kNoDevice, fingerprint_)));
}

}  // namespace millrace
