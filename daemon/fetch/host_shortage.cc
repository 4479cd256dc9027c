#include "daemon/fetch/host_shortage.h"

#include <cerrno>
#include <string>

namespace millrace {
namespace {

constexpr Bytes kOrdinary = 16_MiB;

}  // namespace

Error io_error(std::string_view what, int error_number) {
  Error error = errno_error(what, error_number);
  if (error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM) error.code = Code::kUnavailable;
  return error;
}

Error no_memory(std::string_view what, Bytes size) {
  return Error{size > kOrdinary ? Code::kExhausted : Code::kUnavailable,
               "no memory for " + std::string(what) + " of " + to_text(size)};
}

}  // namespace millrace
