// Making way for a listening Unix socket. Functions, thread-safe.
#pragma once

#include <string>

#include "proto/base/result.h"

namespace millrace {

// Removes a socket that a dead daemon left at `path`. kPrecondition: somebody listens there, or it is not a socket;
// kInvalid: longer than an address may be.
Result<void> claim_socket_path(const std::string& path);

}  // namespace millrace
