// How a test says that it did not check something. Every test of the tree does so through skip_loudly(), because ctest
// hides what a passing test prints: config/setup.sh test lists what was skipped at its end, with the reasons.
#pragma once

#include <string>

namespace millrace {

// Says on stderr that `what` was not checked, and appends a line to the file that MILLRACE_SKIPPED names, if it names
// one. `what` holds the reason as well, and is the same for checks that are skipped for the same reason: they are
// counted. Thread-safe.
void skip_loudly(const std::string& what);

// Whether this build has no kernels for GPUs, without which simulated ones make nothing either: then says so, loudly.
// Thread-safe.
bool skips_without_gpu_kernels();

// Whether the tests' files lie where the daemon keeps nothing of files: on overlayfs, as in a container, or on tmpfs,
// whose times tell no change (daemon/cache/README.md). Then says so, loudly. Thread-safe.
bool skips_where_no_file_is_kept();

}  // namespace millrace
