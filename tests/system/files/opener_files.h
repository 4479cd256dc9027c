// What the tests of the opener have in common: a service that may read little, clients who may read more, and files.
#pragma once

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/users.h"

namespace millrace {

inline constexpr gid_t kTeam = 64'050;

inline bool skipped_without_openers() {
  if (is_root()) return false;
  skip_loudly("an opener (needs root, to be several users)");
  return true;
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

inline auto is_denied() {
  return Catch::StartsWith("PERMISSION_DENIED not readable");
}

}  // namespace millrace
