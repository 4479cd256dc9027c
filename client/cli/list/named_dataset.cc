#include "client/cli/list/named_dataset.h"

#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "client/cli/interrupt.h"
#include "client/cli/list/list_file.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::hours kListPatience{12};
constexpr std::string_view kHowToList = "`python -m millrace list SOURCE -o FILE` writes one of shards and tables";

// Whether there are tar archives or Parquet files in the folder, as far as this process may look.
bool holds_containers(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string ending = at->path().extension().string();
    if (ending == ".tar" || ending == ".parquet" || ending == ".arrow") return true;
  }
  return false;
}

}  // namespace

Result<NamedDataset> named_dataset(const std::string& option, const std::string& path,
                                   const std::vector<std::string>& extensions) {
  const std::string name = option.empty() ? path : option + " " + path;
  std::error_code failed;
  const std::string named = std::filesystem::canonical(path, failed).string();
  if (failed == std::errc::no_such_file_or_directory && path.find_first_of("*?{") != std::string::npos)
    return Error{Code::kNotFound, name + ": no such folder, and a pattern stands for none: name a list of samples; " +
                                      std::string(kHowToList)};
  if (failed) return errno_error(name, failed.value());
  if (std::filesystem::is_directory(named, failed)) return NamedDataset{named, false};
  if (failed || !std::filesystem::is_regular_file(named, failed) || !ListFile::is_one(named))
    return Error{Code::kInvalid,
                 name + " is a file: name the folder that it lies in, or a list of samples (JSON Lines: *.jsonl); " +
                     std::string(kHowToList)};
  if (extensions.empty()) return NamedDataset{named, true};
  return Error{Code::kInvalid, "--extension: a list names its samples itself; leave it out"};
}

Result<Connection> open_connection_for(const ConnectionOptions& options, const NamedDataset& named) {
  if (!named.is_list) return open_connection(options, {named.path});
  if (!options.own) return open_connection(options);
  MILLRACE_TRY(std::string folder, common_folder_of(named.path));
  return open_connection(options, {std::move(folder)});
}

Result<Dataset> open_named(Session& session, const NamedDataset& named, DatasetOptions options) {
  if (!named.is_list) {
    Result<Dataset> opened = session.open_dataset(named.path, options);
    if (!opened && opened.error().code == Code::kNotFound && holds_containers(named.path))
      return Error{Code::kNotFound,
                   opened.error().message + "; name a list of samples in its place; " + std::string(kHowToList)};
    return opened;
  }
  MILLRACE_TRY(ListFile list, ListFile::open(named.path));
  options.timeout = kListPatience;
  return session.open_list(
      [&, samples = std::uint64_t{0}]() mutable -> Result<std::optional<ListedFile>> {
        if (interrupted()) return Error{Code::kCancelled, "interrupted"};
        MILLRACE_TRY(std::optional<ListedFile> file, list.next());
        if (!file && samples == 0) return Error{Code::kNotFound, printable(named.path) + ": no samples in it"};
        samples += file ? 1 : 0;
        return file;
      },
      options);
}

}  // namespace millrace::cli
