// Where the daemon finds the opener: a socket that systemd passes, or one made by hand. Functions for main()'s thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// The one socket that the service manager passed (sd_listen_fds(3)). kPrecondition: none, several, or not of
// SOCK_SEQPACKET; says what to do.
Result<UniqueFd> passed_socket();

// A new one at `path`, in the place of one that a dead opener left there. Any user may connect to it: the server
// looks who it is.
Result<UniqueFd> listen_at(const std::string& path);

// A user's number, of its name or its number; nullopt: there is no such user.
std::optional<uid_t> user_of(const std::string& name);

}  // namespace millrace
