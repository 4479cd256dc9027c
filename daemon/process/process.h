// What holds for the process as a whole: its memory, its signals, what its libraries say. Functions for main()'s
// thread, before there is another.
#pragma once

#include "daemon/settings/settings.h"

namespace millrace {

// The log begins, large blocks of memory are given back to the kernel, no signal ends a write to a closed socket.
void prepare_process(const Settings& settings);

}  // namespace millrace
