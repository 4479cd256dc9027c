// The other process of reclaim.*.
#pragma once

namespace millrace::bench {

// Becomes a client that holds a session until it is killed when the arguments say so, and does not come back then.
// main() calls it first.
void hold_a_session_if_asked(int argc, char** argv);

}  // namespace millrace::bench
