// What a daemon that stops says to everybody. Pure functions, thread-safe.
#pragma once

#include "proto/base/error.h"

namespace millrace {

// kUnavailable.
inline Error stopping() {
  return Error{Code::kUnavailable,
               "millraced is stopping; once it runs again open a new session, and an epoch goes on from its position"};
}

}  // namespace millrace
