// What the process may do. Functions for main()'s thread, before there is another.
#pragma once

#include "proto/base/result.h"

namespace millrace {

// From here on the process has CAP_SETUID and CAP_SETGID and nothing else, gains nothing by starting programs, and no
// debugger attaches to it. kPrecondition: it has not got the two, or runs as root; says how to start it.
Result<void> keep_two_capabilities();

}  // namespace millrace
