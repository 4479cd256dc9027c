// What can go wrong, as a value: a code that callers branch on and a message that says what to do.
// proto/rpc/status_map.h alone maps the codes to gRPC's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

enum class Code : std::uint8_t {
  kInvalid = 1,   // the request or the bytes are malformed; the message names the field or the reason
  kNotFound,      // no such file, dataset, session
  kDenied,        // the caller may not; the same words whether the thing exists or not
  kExhausted,     // a budget is used up; the message says which and how to raise it
  kDeadline,      // the deadline passed
  kCancelled,     // the client cancelled, or the daemon drains
  kPrecondition,  // a stale handle or token: right once, not any more
  kUnavailable,   // daemon gone, device lost: try again later or elsewhere
  kUnsupported,   // a well-formed wish that this build or backend does not fulfil
  kInternal,      // our bug or the host's failure; the message says where
};

std::string_view code_name(Code code);  // "INVALID_ARGUMENT", ...: gRPC's names where they exist

struct Error {
  Code code = Code::kInternal;
  std::string message;

  // The same error, its message led by where it happened: "settings.toml: " + message.
  Error within(std::string_view where) const {
    std::string text(where);
    text += ": ";
    text += message;
    return Error{code, std::move(text)};
  }
};

// The error for a failed system call: errno's code and text after `what`, which names the call's object ("opening
// /etc/x").
Error errno_error(std::string_view what, int error_number);

}  // namespace millrace
