// What the daemon itself lacks while it reads: descriptors, memory. Never the trouble of the file that it happened to
// be reading, so it has a code of its own among a sample's errors, kUnavailable. Thread-safe: plain functions.
#pragma once

#include <string_view>

#include "proto/base/bytes.h"
#include "proto/base/error.h"

namespace millrace {

// As errno_error(), but kUnavailable for EMFILE, ENFILE and ENOMEM.
Error io_error(std::string_view what, int error_number);

// A failed allocation of `size` for `what` was the daemon's want; or, where `size` is out of the ordinary, the trouble
// of the client that needs so much: kExhausted.
Error no_memory(std::string_view what, Bytes size);

}  // namespace millrace
