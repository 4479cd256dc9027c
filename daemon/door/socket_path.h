// Making way for a listening Unix socket, and who can reach it. Functions, thread-safe.
#pragma once

#include <string>

#include "proto/base/result.h"

namespace millrace {

// Removes a socket that a dead daemon left at `path`. kPrecondition: somebody listens there, or it is not a socket;
// kInvalid: longer than an address may be.
Result<void> claim_socket_path(const std::string& path);

// Whether users beside this process's own, and root, may come to a socket at `path`: not if a folder above it is this
// user's alone, as $XDG_RUNTIME_DIR is. As the folders are now.
bool others_can_reach(const std::string& path);

}  // namespace millrace
