// What the tests of the opener have in common: a service that may read little, clients who may read more, and files.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/image_folder.h"
#include "tests/support/test_images.h"
#include "tests/system/daemon.h"

namespace millrace {

constexpr uid_t kService = 64'001, kAlice = 64'003, kBob = 64'004;
constexpr gid_t kTeam = 64'050;

inline bool skipped_without_openers() {
  if (is_root()) return false;
  skip_loudly("an opener (needs root, to be several users)");
  return true;
}

inline std::vector<std::byte> some_picture(std::uint32_t seed) {
  return make_jpeg({.pixels = make_pixels(60, 50, 3, seed)});
}

inline void give_to(const std::string& path, uid_t user, gid_t group, mode_t mode) {
  if (chown(path.c_str(), user, group) != 0 || chmod(path.c_str(), mode) != 0)
    throw std::runtime_error("cannot change " + path);
}

// A picture of that owner, group and mode.
inline std::string picture_of(const std::string& path, uid_t user, gid_t group, mode_t mode, std::uint32_t seed = 1) {
  write_file(path, some_picture(seed));
  give_to(path, user, group, mode);
  return path;
}

// A folder where everybody may go.
struct OpenFolder {
  OpenFolder() { chmod(folder.path().c_str(), 0755); }
  std::string operator/(const std::string& name) const { return folder / name; }
  const std::string& path() const { return folder.path(); }
  TempFolder folder;
};

// A service of a user who may read none of the files that only their group may.
inline DaemonSpec service_with_opener(std::vector<std::string> roots) {
  return {.roots = std::move(roots), .user = kService, .for_all_users = true, .opener = OpenerBeside::kYes};
}

// What each of `paths` comes to for a client of `user`, without its number.
inline std::vector<std::string> verdicts(const Daemon& daemon, const std::vector<std::string>& paths,
                                         std::optional<uid_t> user) {
  std::vector<std::string> verdicts;
  std::istringstream lines(daemon.run_client("read", paths, user));
  for (std::string line; std::getline(lines, line);) verdicts.push_back(line.substr(line.find(' ') + 1));
  return verdicts;
}

inline auto is_denied() {
  return Catch::StartsWith("PERMISSION_DENIED not readable");
}

}  // namespace millrace
