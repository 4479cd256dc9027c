// The walls around a process that decodes. Nobody tears them down: not the process, and nothing that it could start.
//
// From here on it may read and write its memory and the one channel, take private memory within its limit, look at the
// clock, and end. Any other system call kills it: it opens nothing, connects to nobody, starts nothing, signals nobody
// else, maps nothing that can be executed. The kernel kills it when the thread that started it ends.
//
// Builds with a sanitizer (proto/base/sanitized.h) leave out what their run-time libraries need: mappings of other kinds
// (none that can be executed), signals' actions, writing, pipes and closing, and the limits on memory, stack and
// descriptors.
#pragma once

#include <cstdint>

#include "proto/base/result.h"

namespace millrace {

struct SandboxLimits {
  std::uint64_t data_bytes = 0;   // private memory; the daemon, which starts the process, may raise it
  std::uint32_t cpu_seconds = 0;  // of processor time in all
};

// For the whole process. REQUIRES: it has one thread. Every descriptor but `channel` is closed. kInternal: what this
// kernel, or the filter that the process runs under already, does not let it have; then it must not decode.
Result<void> enter_sandbox(int channel, const SandboxLimits& limits);

}  // namespace millrace
