#include "client/cli/position_file.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace millrace::cli {
namespace {

// "millrace-position 1 EPOCH\n", then the token's bytes.
constexpr std::string_view kHead = "millrace-position 1 ";

}  // namespace

Result<RunPosition> read_position(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return RunPosition{};
  if (error) return errno_error("--position " + path, error.value());
  if (std::filesystem::is_directory(status)) return Error{Code::kInvalid, "--position " + path + " is a folder"};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return errno_error("--position " + path, errno);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto line = text.find('\n');
  RunPosition position;
  const bool ours = file && line != std::string::npos && text.compare(0, kHead.size(), kHead) == 0;
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
