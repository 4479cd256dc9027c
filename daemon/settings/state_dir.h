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

// The service's folder if this user owns it, as the service itself does. Else $XDG_STATE_HOME/millrace, or
// ~/.local/state/millrace (XDG Base Directory Specification), if this user owns the home folder: after `sudo`, $HOME
// may still be somebody else's. Empty: none of them.
std::string automatic_state_dir(const StateDirHints& hints);
std::string automatic_state_dir();  // of this process

// Makes `folder`, for this user alone (0700), and the folders above it that are missing. Errors: kDenied if it is
// somebody else's, or that of making it.
Result<void> make_state_dir(const std::string& folder);

}  // namespace millrace
