// The entrance for everything that a client sends: one function for requests, one for Attach, one for Sessions.Open. Pure
// functions, thread-safe; they run on the thread that has read the message.
#pragma once

#include <chrono>
#include <string_view>

#include "daemon/model/limits.h"
#include "daemon/serve/parse/client_request.h"
#include "daemon/serve/parse/dataset_table.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/result.h"

namespace millrace {

// The strings of `message_untrusted` are moved out of it. A malformed message comes back as RefusedRequest, naming
// message and field.
ClientRequest parse_message(v1::ClientMessage& message_untrusted, const Limits& limits, const DatasetTable& datasets,
                            std::chrono::steady_clock::time_point now);

// A stream's one message. kPrecondition: another one than Attach. kInvalid: a malformed one.
Result<Ticket> parse_attach(const v1::ClientMessage& message_untrusted);

// kInvalid: not as long as a ticket is.
Result<Ticket> parse_ticket(std::string_view bytes_untrusted);

// kInvalid naming the field; what budgets allow is looked at later.
Result<OpenRequest> parse_open(const v1::OpenSessionRequest& request_untrusted);

}  // namespace millrace
