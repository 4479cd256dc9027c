// What a call suffers on purpose (hls/card/wire.h). Values; thread-safe: plain functions.
#pragma once

#include "hls/card/device/adapter.h"

namespace millrace::card {

// Before the kernel. Does not return for a crash or a hang.
void harm_before(const Start& start);
// After it, in what it wrote. REQUIRES: the call was not refused.
void harm_after(const Call& call);

}  // namespace millrace::card
