// What one side knows of what clients say to daemons: the daemon sends it at open, a client holds its messages against
// it. Pure functions, thread-safe.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>

#include "millrace/v1/session.pb.h"

namespace millrace {

// Of this build: all that OpenSessionRequest and ClientMessage can hold. Walks the schema: once a process is enough.
v1::Vocabulary own_vocabulary();

// Whether `vocabulary` has all that `part` has.
bool covers(const v1::Vocabulary& vocabulary, const v1::Vocabulary& part);

// What is set in `message`, at any depth, and is not in `vocabulary`: "Recipe.patches", or "the value FILTER_BOX of
// Resize.filter"; nullopt: nothing. Walks the message.
std::optional<std::string> first_missing(const v1::Vocabulary& vocabulary, const google::protobuf::Message& message);

}  // namespace millrace
