// What the daemon told of its limits at open, and requests held against it before they are sent. What it did not tell
// it checks alone. Pure functions, thread-safe.
#pragma once

#include "millrace/session.h"
#include "millrace/v1/session.pb.h"

namespace millrace {
inline namespace client {

RequestLimits from_message(const v1::Limits& told);

// The samples' number, and their encoded bytes: before these are copied. kInvalid: which setting of the daemon's allows
// more, and how to do without.
Result<void> check_samples(const BatchRequest& request, const RequestLimits& limits);

// The whole message. kInvalid: how to do without.
Result<void> check_message(const v1::ClientMessage& message, const RequestLimits& limits);

}  // namespace client
}  // namespace millrace
