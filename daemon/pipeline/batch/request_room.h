// What the daemon keeps of batches beside files and pixels, from when a request has come until its batch has ended: each
// sample's source, how far it is, and what may be said of it if it is bad. Charged to Resource::kRequests. Functions,
// thread-safe.
#pragma once

#include <cstdint>

#include "daemon/model/batch_request.h"
#include "daemon/model/epoch.h"
#include "proto/base/bytes.h"

namespace millrace {

// With the paths and encoded bytes that came with it.
Bytes room_for(const BatchRequest& request);

// For as many batches of the epoch as `slots` can hold at once, and for which of its blocks are begun.
Bytes room_for(const EpochOrderSpec& spec, std::uint32_t slots);

}  // namespace millrace
