// The same bytes by other roads, for comparison: another process sends them, we hold them in contiguous memory.
// Microseconds from the moment the sender begins to the moment the receiver has them, a value a round, warm-up rounds
// left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::bench {

std::vector<double> through_pipe(std::size_t bytes, std::uint32_t rounds);

// One reply of a unary call over a Unix socket, as raw bytes: without protobuf's own copies, so in gRPC's favour.
std::vector<double> through_grpc(std::size_t bytes, std::uint32_t rounds);

// Becomes the sending side of through_grpc() when the arguments say so, and does not come back then. main() calls it
// first.
void serve_bytes_if_asked(int argc, char** argv);

}  // namespace millrace::bench
