#include "client/cli/folder.h"

#include <cerrno>
#include <filesystem>

namespace millrace::cli {

Result<std::string> canonical_folder(const std::string& option, const std::string& path) {
  const std::string name = option.empty() ? path : option + " " + path;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::canonical(path, failed);
  if (!failed && !std::filesystem::is_directory(folder, failed) && !failed)
    return Error{Code::kInvalid, name + " is a file: name the folder that it lies in"};
  if (failed) return errno_error(name, failed.value());
  return folder.string();
}

}  // namespace millrace::cli
