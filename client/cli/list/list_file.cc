#include "client/cli/list/list_file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "client/cli/list/list_line.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

// "a/../b" and "./a" are no paths of the daemon's.
std::string normal(std::string path) {
  const bool is_plain = path.find("/.") == path.npos && path.find("//") == path.npos;
  return is_plain ? path : std::filesystem::path(path).lexically_normal().string();
}

std::string_view common(std::string_view folder, std::string_view path) {
  const auto same = static_cast<std::size_t>(std::ranges::mismatch(folder, path).in1 - folder.begin());
  if (same == folder.size() && path.size() > same && path[same] == '/') return folder;
  return folder.substr(0, folder.rfind('/', same - 1));  // both begin with a slash, or the folder is ""
}

}  // namespace

bool ListFile::is_one(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".jsonl" || ending == ".ndjson") return true;
  std::ifstream file(path, std::ios::binary);
  return file.get() == '{';
}

Result<ListFile> ListFile::open(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error(path, errno == 0 ? EIO : errno);
  return ListFile(path, std::move(file));
}

ListFile::ListFile(std::string path, std::ifstream file)
    : path_(std::move(path)),
      folder_(path_.substr(0, path_.rfind('/') + 1)),
      file_(std::move(file)),
      line_(kLongestLine + 1) {}

Error ListFile::wrong(const std::string& what) const {
  return Error{Code::kInvalid, printable(path_) + ":" + std::to_string(number_) + ": " + what};
}

// false: there is none left.
Result<bool> ListFile::read_line() {
  ++number_;
  file_.getline(line_.data(), static_cast<std::streamsize>(line_.size()));
  if (file_.bad()) return wrong("cannot be read");
  if (!file_.fail()) {
    const auto size = static_cast<std::size_t>(file_.gcount()) - (file_.eof() ? 0 : 1);
    if (std::string_view(line_.data()).size() < size) return wrong("has a zero byte");
    return true;
  }
  if (file_.gcount() == 0) return false;
  return wrong("is longer than " + std::to_string(kLongestLine) + " bytes");
}

Result<std::optional<ListedFile>> ListFile::next() {
  while (true) {
    MILLRACE_TRY(const bool is_there, read_line());
    if (!is_there) return std::optional<ListedFile>();
    if (std::string_view(line_.data()).find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<ListedFile> sample = parse_list_line(line_.data());
    if (!sample) return wrong(sample.error().message);
    if (!sample->path.starts_with('/')) sample->path.insert(0, folder_);
    sample->path = normal(std::move(sample->path));
    return std::optional(*std::move(sample));
  }
}

Result<std::string> common_folder_of(const std::string& list) {
  MILLRACE_TRY(ListFile file, ListFile::open(list));
  std::optional<std::string> folder;
  while (true) {
    MILLRACE_TRY(const std::optional<ListedFile> sample, file.next());
    if (!sample) break;
    if (!folder) folder = sample->path.substr(0, sample->path.rfind('/'));
    folder->resize(common(*folder, sample->path).size());
  }
  return folder.value_or("").empty() ? "/" : *folder;
}

Result<std::vector<ListedSample>> spread_over(const std::string& list, std::uint64_t count) {
  std::uint64_t samples = 0;
  MILLRACE_TRY(ListFile first, ListFile::open(list));
  while (true) {
    MILLRACE_TRY(const std::optional<ListedFile> sample, first.next());
    if (!sample) break;
    ++samples;
  }
  if (samples == 0) return Error{Code::kNotFound, printable(list) + ": no samples in it"};
  const std::uint64_t chosen = std::min(count, samples);
  std::vector<ListedSample> spread;
  MILLRACE_TRY(ListFile file, ListFile::open(list));
  for (std::uint64_t position = 0; spread.size() < chosen; ++position) {
    MILLRACE_TRY(std::optional<ListedFile> sample, file.next());
    if (!sample) break;  // it has become shorter
    if (position == spread.size() * samples / chosen) spread.push_back({position, *std::move(sample)});
  }
  return spread;
}

}  // namespace millrace::cli
