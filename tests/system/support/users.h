// Users of a test that has several: files of theirs, and what clients of theirs may read.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/pictures/test_images.h"
#include "tests/support/skip.h"
#include "tests/system/support/daemon.h"

namespace millrace {

// The service's own user, and users of clients.
inline constexpr uid_t kService = 64'001, kOther = 64'002, kAlice = 64'003, kBob = 64'004, kStranger = 64'005;

// Whether the test is one user's, who is not root; then it says that `what` was not checked.
inline bool skipped_without_root(const char* what) {
  if (is_root()) return false;
  skip_loudly(std::string(what) + " (needs root, to be several users)");
  return true;
}

inline std::vector<std::byte> some_picture(std::uint32_t seed) {
  return make_jpeg({.pixels = make_pixels(60, 50, 3, seed)});
}

inline void give_to(const std::string& path, uid_t user, gid_t group, mode_t mode) {
  if (chown(path.c_str(), user, group) != 0 || chmod(path.c_str(), mode) != 0)
    throw std::runtime_error("cannot change " + path);
}

// What each of `paths` comes to for a client of `user`, without its number.
inline std::vector<std::string> verdicts(const Daemon& daemon, const std::vector<std::string>& paths,
                                         std::optional<uid_t> user = {}) {
  std::vector<std::string> verdicts;
  std::istringstream lines(daemon.run_client("read", paths, user));
  for (std::string line; std::getline(lines, line);) verdicts.push_back(line.substr(line.find(' ') + 1));
  return verdicts;
}

}  // namespace millrace
