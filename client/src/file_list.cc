#include "client/src/file_list.h"

#include <algorithm>
#include <string_view>

namespace millrace {
inline namespace client {
namespace {

std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
}

// Without the slash after it; "" is that of all.
std::string_view common(std::string_view folder, std::string_view path) {
  const auto differ = std::ranges::mismatch(folder, path);
  const auto same = static_cast<std::size_t>(differ.in1 - folder.begin());
  if (same == folder.size() && path.size() > same && path[same] == '/') return folder;
  return folder_of(folder.substr(0, same));
}

}  // namespace

std::string common_folder(std::span<const ListedFile> files) {
  if (files.empty()) return "/";
  std::string_view folder = folder_of(files.front().path);
  for (const ListedFile& file : files) folder = common(folder, file.path);
  return folder.empty() ? "/" : std::string(folder);
}

v1::ListFiles next_part(std::uint64_t dataset_id, std::span<const ListedFile> files, const std::string& folder,
                        std::size_t bytes, std::size_t& at) {
  v1::ListFiles part;
  part.set_dataset_id(dataset_id);
  if (at == 0) part.set_folder(folder);
  const std::size_t before = folder == "/" ? 1 : folder.size() + 1;
  std::string& paths = *part.mutable_paths();
  do {
    const ListedFile& file = files[at++];
    paths.append(file.path, std::min(before, file.path.size()));
    paths.push_back('\0');
    part.add_labels(file.label);
  } while (at < files.size() && paths.size() < bytes);
  part.set_last(at == files.size());
  return part;
}

}  // namespace client
}  // namespace millrace
