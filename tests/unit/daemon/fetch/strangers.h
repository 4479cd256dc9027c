// Another user's rights, tried on files of the tests' own user: needs no root, but a temporary folder that is not
// private.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/model/caller.h"
#include "tests/support/skip.h"

namespace millrace {

inline Caller myself() {
  return {.uid = geteuid(), .gid = getegid()};
}

// Neither root nor the tests' own user.
inline Caller stranger() {
  return {.uid = 54'321, .gid = 54'321};
}

// Whether strangers may search every folder down to `folder`; not where $TMPDIR is private. Then it says what is
// skipped.
inline bool strangers_reach(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  for (fs::path at = folder; at != at.root_path(); at = at.parent_path()) {
    if ((fs::status(at).permissions() & fs::perms::others_exec) != fs::perms::none) continue;
    skip_loudly("rights of strangers: " + at.string() + " keeps them out; set TMPDIR to try them");
    return false;
  }
  return true;
}

// Whose rights to try at `folder`.
inline std::vector<Caller> everybody(const std::filesystem::path& folder) {
  return strangers_reach(folder) ? std::vector<Caller>{myself(), stranger()} : std::vector<Caller>{myself()};
}

}  // namespace millrace
