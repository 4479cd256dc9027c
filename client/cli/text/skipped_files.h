// What of a folder is no sample, told once. Thread-safe: a pure function and its printing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/epoch.h"

namespace millrace::cli {

// "13 files are no samples: 10 .txt (a/README.txt, ...), 2 .bmp (a/1.bmp, ...; not decoded: convert them), 1 more".
// Four kinds at the most, long names cut short.
// REQUIRES: `files` is at least 1.
std::string describe_skipped(std::uint64_t files, const std::vector<SkippedFiles>& groups);

// One line on stderr, if there are any.
void print_skipped(const Dataset& dataset);

}  // namespace millrace::cli
