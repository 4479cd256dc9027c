// From a message to a request that is checked and has its room: the same for whatever way it came by. Functions,
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>

#include "daemon/admit/ledger.h"
#include "daemon/model/limits.h"
#include "daemon/serve/parse/client_request.h"
#include "daemon/serve/parse/dataset_table.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/bytes.h"

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

// The same of a message's bytes, as they came over a reply socket. A batch of more samples than may be is refused before
// it is parsed. nullopt: they are no message.
std::optional<TakenIn> take_in(ByteView bytes_untrusted, v1::ClientMessage& message, const Limits& limits,
                               const DatasetTable& datasets, Account* account);

// How many of a message's bytes parsing has to look at one by one: all but the images in a Submit, which are copied.
// Looks at `most` of them itself, and is at most one field beyond that when there are more.
std::size_t bytes_beside_images(ByteView bytes_untrusted, std::size_t most);

}  // namespace millrace
