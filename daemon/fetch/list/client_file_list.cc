#include "daemon/fetch/list/client_file_list.h"

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
  std::uint64_t bytes = 0;
  for (const FilesPart& part : task_.files) bytes += part.paths_untrusted.size();
  // Parts are let go of as they are taken, but not sooner than the system has that memory back.
  if (task_.room) MILLRACE_TRY_VOID(task_.room({2 * bytes}));
  paths_.reserve(bytes);
  return {};
}

Result<void> ClientFileList::take(FilesPart part) {
  const std::string_view paths = part.paths_untrusted;
  const std::size_t before = entries_.size();
  for (std::size_t at = 0; at < paths.size();) {
    const std::size_t end = paths.find('\0', at);
    if (end == paths.npos) return Error{Code::kInvalid, "paths: no zero byte after the last one"};
    const std::string_view path = paths.substr(at, end - at);
    MILLRACE_TRY_VOID(check(path));
    const std::size_t number = entries_.size() - before;
    if (!part.labels.empty() && number >= part.labels.size()) return labels_unlike_paths();
    entries_.emplace_back(paths_.size() + at, path.size(), part.labels.empty() ? -1 : part.labels[number]);
    fingerprint_ = fingerprint_with(fingerprint_, path);
    at = end + 1;
  }
  if (!part.labels.empty() && entries_.size() - before != part.labels.size()) return labels_unlike_paths();
  paths_ += paths;
  if (!task_.room) return {};
  return task_.room({paths_.capacity() + entries_.capacity() * sizeof(Dataset::Entry)});
}

Result<void> ClientFileList::check(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath)
    return Error{Code::kInvalid, name_of(path) + " must have 1 to " + std::to_string(kLongestPath) + " bytes"};
  full_.resize(folder_.size());
  full_ += '/';
  full_ += path;
  if (!is_clean(std::string_view(full_).substr(folder_.size())))
    return Error{Code::kInvalid, name_of(path) + " must be without empty components, \".\" and \"..\""};
  if (beneath_root_ || roots_.root_of(full_)) return {};
  return roots_.with_roots(not_readable()).within(name_of(path));
}

std::string ClientFileList::name_of(std::string_view path) const {
  return "sample " + std::to_string(entries_.size()) + " \"" + printable(folder_) + "/" +
         printable(path.substr(0, kLongestPath)) + "\"";
}

ClientFileList::Outcome ClientFileList::finish() {
  if (entries_.empty()) return Error{Code::kNotFound, "the list is empty: a dataset needs a file"};
  entries_.shrink_to_fit();
  return std::shared_ptr<const Dataset>(std::make_shared<const Dataset>(
      std::move(folder_), std::move(paths_), std::move(entries_), std::vector<std::string>{}, fingerprint_, Skipped{},
      std::vector<Dataset::Range>{}, dataset_number(kNoDevice, fingerprint_)));
}

}  // namespace millrace
