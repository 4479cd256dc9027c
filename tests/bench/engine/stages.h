// Where the time of an image goes, stage by stage, with each instruction set that this processor has: one thread, files
// in memory. Sees the engine's headers.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// engine.STAGE.TARGET: nanoseconds a block or a pixel, and microseconds an image of whole recipes.
void run_stages(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
