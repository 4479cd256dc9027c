#include "client/cli/position_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "proto/base/unique_fd.h"

namespace millrace::cli {
namespace {

// "millrace-position 1 EPOCH\n", then the token's bytes.
constexpr std::string_view kHead = "millrace-position 1 ";
constexpr std::size_t kMost = 64 << 10;  // bytes; a token has a few dozen

// A regular file of at most kMost bytes; nullopt: there is none. Never blocks, whatever lies there.
Result<std::optional<std::string>> read_small(const std::string& what, const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::optional<std::string>();
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return errno_error(what, errno);
  if (S_ISDIR(status.st_mode)) return Error{Code::kInvalid, what + " is a folder"};
  if (!S_ISREG(status.st_mode)) return Error{Code::kInvalid, what + " is no regular file: name another"};
  std::string text(kMost + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(what, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMost) return Error{Code::kInvalid, what + " is too large for a position file: name another"};
  text.resize(size);
  return std::optional(std::move(text));
}

}  // namespace

Result<RunPosition> read_position(const std::string& path) {
  MILLRACE_TRY(const std::optional<std::string> read, read_small("--position " + path, path));
  if (!read) {
    const std::string folder = std::filesystem::path(path).parent_path();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
      return errno_error("--position " + path + " cannot be written there", errno);
    return RunPosition{};
  }
  const std::string& text = *read;
  const auto line = text.find('\n');
  RunPosition position;
  const bool ours = line != std::string::npos && text.compare(0, kHead.size(), kHead) == 0;
  const char* end = text.data() + (ours ? line : 0);
  const auto number =
      ours ? std::from_chars(text.data() + kHead.size(), end, position.epoch) : std::from_chars_result{};
  if (!ours || number.ec != std::errc() || number.ptr != end)
    return Error{Code::kInvalid,
                 path + " is not a position file; name another with --position, or remove it to begin again"};
  position.token = text.substr(line + 1);
  return position;
}

Result<void> write_position(const std::string& path, const RunPosition& position) {
  const std::string fresh = path + ".new";
  {
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file << kHead << position.epoch << '\n' << position.token;
    file.close();
    if (!file) return errno_error("writing " + fresh, errno);
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return errno_error("writing " + path, errno);
  return {};
}

}  // namespace millrace::cli
