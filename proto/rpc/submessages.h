// How many messages a message has within it, counted on its bytes: an empty one takes two bytes there, and hundreds once
// libprotobuf has made it. Pure function, thread-safe.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>

#include "proto/base/bytes.h"

namespace millrace {

// Of a message of `type`, at every depth; once there are more than `most`, some number above it. Bytes that are no such
// message count as far as they are one.
std::size_t submessages(ByteView bytes_untrusted, const google::protobuf::Descriptor& type, std::size_t most);

}  // namespace millrace
