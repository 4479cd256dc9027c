// From a message's bytes to a request that is checked and has its room. Functions, thread-safe.
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

// Empties it for the next message: its memory stays, unless it was `bytes` long and that is much.
void empty_for_next(v1::ClientMessage& message, Bytes bytes);

// What came is no message at all.
Error no_message();

// What came over a reply socket. `message`: for its memory. A request that there is no room for becomes its refusal; a
// batch of more samples than may be is refused before it is parsed. `account`: null: nothing is charged. nullopt: the
// bytes are no message.
std::optional<TakenIn> take_in(ByteView bytes_untrusted, v1::ClientMessage& message, const Limits& limits,
                               const DatasetTable& datasets, Account* account);

// How many of a message's bytes parsing has to look at one by one: all but the images in a Submit, which are copied.
// Looks at `most` of them itself, and is at most one field beyond that when there are more.
std::size_t bytes_beside_images(ByteView bytes_untrusted, std::size_t most);

}  // namespace millrace
