// What it costs that the libraries' decoders run in processes of their own. Sees the daemon's headers.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// isolation.cost, isolation.cpu, and both with .png, .webp, .progressive.
void run_isolation(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
