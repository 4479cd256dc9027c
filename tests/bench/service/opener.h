// What it costs to have a file opened as the client who asks for it (daemon/opener). Thread-bound(main).
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// Adds its figure, or says why not: it takes root to start an opener.
void run_opener(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
