// The JPEG engine against libjpeg-turbo, in one thread, with files in memory. Sees the daemon's headers, unlike the
// rest.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// jpeg.entropy, jpeg.entropy.indexed, jpeg.entropy.restarts, jpeg.decode.exact, train.exact.first, train.exact.indexed,
// train.exact.recording, train.fast.first, train.fast.indexed, train.exact.first.avx2, train.fast.first.avx2.
void run_engine(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
