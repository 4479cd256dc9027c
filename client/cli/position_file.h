// Where a run stands, in a file: which epoch, and the daemon's position token within it. Replaced as a whole, so that a
// crash leaves the old one or the new one. Pure functions but for the file.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/result.h"

namespace millrace::cli {

struct RunPosition {
  std::uint64_t epoch = 0;
  std::string token;  // empty: from the epoch's start
};

// Without such a file: the beginning, or an error where none can be written. Refuses what is no regular file, or too
// large to be one of ours, without reading it.
Result<RunPosition> read_position(const std::string& path);
Result<void> write_position(const std::string& path, const RunPosition& position);

}  // namespace millrace::cli
