// Pictures to PNG files, through libspng. Thread-safe.
#pragma once

#include <string>

#include "client/cli/picture/canvas.h"
#include "millrace/result.h"

namespace millrace::cli {

Result<void> write_png(const std::string& path, const Picture& picture);

}  // namespace millrace::cli
