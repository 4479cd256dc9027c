// Tensors from packed forms of photographs against tensors from their files, in one thread, with all of it in memory.
#pragma once

#include "tests/bench/figures.h"

namespace millrace::bench {

// infer.exact.first, train.exact.packed, train.fast.packed, infer.exact.packed, train.exact.packed.avx2, .avx512bw.
void run_packed_engine(const BenchOptions& options, const Report& report);

}  // namespace millrace::bench
