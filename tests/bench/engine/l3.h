// L3 beside PNG of the same pixels, in one thread, with files in memory. Sees the daemon's headers.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// l3.decode, l3.decode.avx2, l3.decode.scalar, l3.crop, l3.encode.fast, l3.encode.best.
void run_l3(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
