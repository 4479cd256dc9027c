// The baseline of service.efficiency: what a program gets that calls our kernels itself. Reads files, parses headers,
// draws the same boxes and makes the same tensors, with nothing between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::bench {

// Images a second of one pass over `files` with RandomResizedCrop 224 and flip 0.5, drawn for epoch `epoch` of seed 1,
// by `threads` threads that take the next file each. Ends the program if a file cannot be made.
double plain_loop(const std::vector<std::string>& files, std::uint32_t threads, std::uint64_t epoch);

}  // namespace millrace::bench
