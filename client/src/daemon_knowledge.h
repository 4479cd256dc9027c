// What a session's daemon knows of what this library can say. A daemon that knows all of it, the usual case, costs
// nothing: that is found out once, at open. Of an older one every message is looked through before it is sent, so that
// what it lacks is named instead of left out. Immutable.
#pragma once

#include <optional>
#include <string>

#include "millrace/v1/session.pb.h"
#include "proto/base/result.h"

namespace millrace {
inline namespace client {

class DaemonKnowledge {
 public:
  // kPrecondition: the daemon is so old that it does not say what it knows.
  static Result<DaemonKnowledge> create(const v1::OpenSessionReply& reply);

  // kUnsupported: names what `message` says and the daemon does not know: "millraced 0.1.0 does not know
  // Recipe.patches".
  Result<void> check(const google::protobuf::Message& message) const;

 private:
  DaemonKnowledge(std::string daemon, std::optional<v1::Vocabulary> partial)
      : daemon_(std::move(daemon)), partial_(std::move(partial)) {}

  std::string daemon_;                     // "millraced 0.1.0"
  std::optional<v1::Vocabulary> partial_;  // none: it knows all that this library can say
};

}  // namespace client
}  // namespace millrace
