// Packed images beside entropy decoding, in one thread, with files in memory. Sees the engine's headers.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// packed.size; packed.decode beside both ways of entropy decoding, packed.decode.avx2; packed.encode,
// packed.encode.memory, packed.encode.avx2.
void run_packed(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
