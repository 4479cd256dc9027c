// Where what is remembered from start to start (seek indexes) is kept, when the settings leave it open. Thread-safe:
// plain functions.
#pragma once

#include <string>

#include "proto/base/result.h"

namespace millrace {

// What the choice depends on.
struct StateDirHints {
  std::string service = "/var/lib/millrace";  // the service's
  std::string xdg_state_home;                 // $XDG_STATE_HOME
  std::string home;                           // $HOME
};

// The service's folder where it is this user's own, as it is for the service itself; else $XDG_STATE_HOME/millrace, or
// ~/.local/state/millrace (XDG Base Directory Specification) where home is this user's own, which it is not for a root
// that kept somebody else's. Empty: none of them.
std::string automatic_state_dir(const StateDirHints& hints);
std::string automatic_state_dir();  // of this process

// Makes `folder`, for this user alone (0700), and what is missing above it. kDenied where it is somebody else's; or
// what making it came to.
Result<void> make_state_dir(const std::string& folder);

}  // namespace millrace
