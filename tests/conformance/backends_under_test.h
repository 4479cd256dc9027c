// The backends that the conformance suite and the pipeline's tests run with: every row of the product's table, and those
// that exist for tests. Pure functions.
#pragma once

#include <vector>

#include "daemon/backend/backend_row.h"

namespace millrace {

struct BackendUnderTest : BackendRow {
  bool can_lose = false;         // its device, where BenchSettings::fake asks for it
  bool leaves_verdicts = false;  // on what is damaged: to the CPU, so it gives that back as kUnsupported
  bool takes_packed = false;     // forms in place of files
};

std::vector<BackendUnderTest> backends_under_test();

// The row "cpu" once more, with cpu.isolation = "process".
BackendUnderTest isolated_cpu();

}  // namespace millrace
