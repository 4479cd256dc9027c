// From a message to a request that is checked and has its room: the same for whatever way it came by. Functions,
// thread-safe.
#pragma once

#include <chrono>

#include "daemon/admit/ledger.h"
#include "daemon/model/limits.h"
#include "daemon/serve/client_request.h"
#include "daemon/serve/dataset_table.h"
#include "millrace/v1/session.pb.h"

namespace millrace {

struct TakenIn {
  ClientRequest request;
  Charge room;  // for what is kept of it
};

// A request that there is no room for becomes its refusal. The strings of `message_untrusted` are moved out of it.
// `account`: null: nothing is charged.
TakenIn take_in(v1::ClientMessage& message_untrusted, const Limits& limits, const DatasetTable& datasets,
                Account* account);

// Empties it for the next message: its memory stays, unless it was `bytes` long and that is much.
void empty_for_next(v1::ClientMessage& message, Bytes bytes);

// What came is no message at all.
Error no_message();

}  // namespace millrace
