// The limits that the daemon told at open, and checks of requests against them before they are sent. A limit that it
// did not tell is left to the daemon to check. Pure functions, thread-safe.
#pragma once

#include "client/src/wire/message_parts.h"
#include "millrace/session.h"
#include "millrace/v1/session.pb.h"

namespace millrace {
inline namespace client {

RequestLimits from_message(const v1::Limits& told);

// Checks the number of samples and their encoded bytes, before these are copied into a message. kInvalid: says which of
// the daemon's settings allows more, and how to do without.
Result<void> check_samples(const BatchRequest& request, const RequestLimits& limits);

// Checks the size of the whole message, `images` in it. kInvalid: says how to make a smaller one.
Result<void> check_message(const v1::ClientMessage& message, std::span<const LargeImage> images,
                           const RequestLimits& limits);

}  // namespace client
}  // namespace millrace
