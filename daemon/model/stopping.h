// What a daemon that stops, or drains, says to everybody. Pure functions, thread-safe.
#pragma once

#include "proto/base/error.h"

namespace millrace {

// kUnavailable.
inline Error stopping() {
  return Error{Code::kUnavailable,
               "millraced is stopping; once it runs again open a new session, and an epoch goes on from its position"};
}

// kUnavailable.
inline Error draining() {
  return Error{
      Code::kUnavailable,
      "millraced is draining: it finishes what is under way and takes nothing new, until it is restarted or its "
      "administrator has it resume (millrace admin resume); an epoch goes on from its position"};
}

// kUnavailable. What the client of a session hears that an administrator closes.
inline Error closed_by_admin() {
  return Error{Code::kUnavailable,
               "an administrator of the daemon has closed this session (millrace admin close); ask him why before you "
               "open another"};
}

}  // namespace millrace
