// PNG by our own decoder against zlib and libspng, in one thread, with files in memory. Sees the daemon's headers. Other
// software is compared by peers/png.py.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// png.decode, png.decode.avx2.
void run_png(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
