#include "proto/rpc/status_map.h"

#include <array>
#include <utility>

namespace millrace {
namespace {

constexpr std::array<std::pair<Code, grpc::StatusCode>, 10> kPairs{{
    {Code::kInvalid, grpc::StatusCode::INVALID_ARGUMENT},
    {Code::kNotFound, grpc::StatusCode::NOT_FOUND},
    {Code::kDenied, grpc::StatusCode::PERMISSION_DENIED},
    {Code::kExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
    {Code::kDeadline, grpc::StatusCode::DEADLINE_EXCEEDED},
    {Code::kCancelled, grpc::StatusCode::CANCELLED},
    {Code::kPrecondition, grpc::StatusCode::FAILED_PRECONDITION},
    {Code::kUnavailable, grpc::StatusCode::UNAVAILABLE},
    {Code::kUnsupported, grpc::StatusCode::UNIMPLEMENTED},
    {Code::kInternal, grpc::StatusCode::INTERNAL},
}};

}  // namespace

grpc::Status to_status(const Error& error) {
  for (const auto& [ours, theirs] : kPairs) {
    if (ours == error.code) return grpc::Status(theirs, error.message);
  }
  return grpc::Status(grpc::StatusCode::INTERNAL, error.message);
}

Error to_error(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) return Error{Code::kDenied, status.error_message()};
  for (const auto& [ours, theirs] : kPairs) {
    if (theirs == status.error_code()) return Error{ours, status.error_message()};
  }
  return Error{Code::kInternal, status.error_message()};
}

Code code_from_name(std::string_view name) {
  for (const auto& [ours, theirs] : kPairs) {
    if (code_name(ours) == name) return ours;
  }
  return Code::kInternal;
}

}  // namespace millrace
