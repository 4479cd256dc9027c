// Prints daemon/doc/metrics.md.
#include <cstdio>

#include "tests/unit/client/cli/metrics_document.h"

int main() {
  return std::fputs(millrace::cli::metrics_document().c_str(), stdout) < 0 ? 1 : 0;
}
