// What a client asks for must be known to this daemon, field by field and value by value. A daemon that passed over
// what it does not know would make something else than was asked for, and nobody would hear of it
// (daemon/doc/adr/0010). Pure functions, thread-safe.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <string_view>

#include "proto/base/error.h"

namespace millrace {

// Every parser of a message asks this first. `Message` is the generated type: that costs a few nanoseconds.
template <class Message>
bool has_unknown_fields(const Message& message_untrusted) {
  static const google::protobuf::Reflection& reflection = *Message::GetReflection();
  return !reflection.GetUnknownFields(message_untrusted).empty();
}

// kInvalid: "500: a field of Recipe that millraced 0.1.0 does not know; ...". REQUIRES: has_unknown_fields().
Error unknown_field(const google::protobuf::Message& message_untrusted);

// kInvalid: "dtype: 77 is not a value that millraced 0.1.0 knows (0 to 4); ...".
Error unknown_value(std::string_view field, int value_untrusted, std::size_t most);

}  // namespace millrace
