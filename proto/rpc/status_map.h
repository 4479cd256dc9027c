// The one place where our error codes meet gRPC's: codes to statuses at the daemon, statuses and code names to errors
// at the client.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "proto/base/error.h"

namespace millrace {

grpc::Status to_status(const Error& error);
Error to_error(const grpc::Status& status);  // REQUIRES: !status.ok()

// The code that `code_name` spelled; kInternal for a name that this version does not know.
Code code_from_name(std::string_view name);

}  // namespace millrace
