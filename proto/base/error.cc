#include "proto/base/error.h"

#include <cerrno>
#include <cstring>

namespace millrace {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "INVALID_ARGUMENT";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kDenied:
      return "PERMISSION_DENIED";
    case Code::kExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kDeadline:
      return "DEADLINE_EXCEEDED";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kUnsupported:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

namespace {

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EXDEV:
    case ELOOP:
      return Code::kDenied;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case EDQUOT:
      return Code::kExhausted;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
      return Code::kInvalid;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return Code::kUnavailable;
    case ETIMEDOUT:
      return Code::kDeadline;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Error errno_error(std::string_view what, int error_number) {
  std::string text(what);
  text += ": ";
  const char* const description = ::strerrordesc_np(error_number);
  text += description != nullptr ? description : "error " + std::to_string(error_number);
  return Error{code_of_errno(error_number), std::move(text)};
}

}  // namespace millrace
