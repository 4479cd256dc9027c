// Which fields and values of requests a session's daemon knows. Whether it knows all that this library can send is
// found out once, at open; then, the usual case, messages are not looked at. Before a message goes to an older daemon
// it is searched for what that does not know, so that an error names it. Immutable.
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
