// Result<T>, Error, Code and Bytes: how libmillrace says what went wrong. Fallible calls return Result<T>; none throws.
// The one definition is the vocabulary that library and daemon share; an installed libmillrace has it as
// millrace/base/*.h.
//
//   auto session = client.open_session({.slots = 4});
//   if (!session) return report(session.error());   // .code to branch on, .message to show: it says what to do
//   MILLRACE_TRY(auto session, client.open_session({.slots = 4}));   // or: declare it, or return the error
#pragma once

#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/result.h"
