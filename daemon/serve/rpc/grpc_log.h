// What gRPC itself has to say, in the daemon's log: much of it quotes what a client sent, as often as he likes, so it is
// escaped, and a line in ten seconds.
#pragma once

namespace millrace {

// From here on, for the whole process. Thread-safe.
void take_over_grpc_log();

}  // namespace millrace
