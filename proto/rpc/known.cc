#include "proto/rpc/known.h"

#include <string>

namespace millrace {
namespace {

const std::string kThisDaemon = "millraced " MILLRACE_VERSION;

}  // namespace

Error unknown_field(const google::protobuf::Message& message) {
  const int number = message.GetReflection()->GetUnknownFields(message).field(0).number();
  return Error{Code::kInvalid, std::to_string(number) + ": a field of " + message.GetDescriptor()->name() + " that " +
                                   kThisDaemon + " does not know; update millraced, or leave it out"};
}

Error unknown_value(std::string_view field, int value, std::size_t most) {
  return Error{Code::kInvalid, std::to_string(value) + " is not a value that " + kThisDaemon + " knows (0 to " +
                                   std::to_string(most) + "); update millraced, or choose another"}
      .within(field);
}

}  // namespace millrace
