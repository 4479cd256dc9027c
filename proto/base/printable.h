// Text from outside made fit for messages, logs and protobuf strings. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// `text_untrusted` as valid UTF-8 without control characters, those that end lines or turn directions included:
// whatever is neither becomes \x1b, a byte each. Everything else, backslashes included, stays as it is.
std::string printable(std::string_view text_untrusted);

// The same in at most `most` bytes; when that is not all, "..." follows.
std::string printable(std::string_view text_untrusted, std::size_t most);

}  // namespace millrace
