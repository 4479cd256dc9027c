// The opaque bytes that resume an epoch: EpochPosition with a checksum. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "millrace/v1/dataset.pb.h"
#include "proto/base/result.h"

namespace millrace {

// `position` without version and checksum; both are filled in.
std::string encode_position(v1::EpochPosition position);

// kInvalid: not a token, damaged, or of a version that this build does not know.
Result<v1::EpochPosition> decode_position(std::string_view token_untrusted);

}  // namespace millrace
