// A folder that a command line names. Pure functions, thread-safe.
#pragma once

#include <string>

#include "proto/base/result.h"

namespace millrace::cli {

// Absolute and without links. Errors begin with `option` and the path: not there, not to be reached, a file.
Result<std::string> canonical_folder(const std::string& option, const std::string& path);

}  // namespace millrace::cli
