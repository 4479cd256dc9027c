#include "client/src/wire/daemon_knowledge.h"

#include "proto/rpc/vocabulary.h"

namespace millrace {
inline namespace client {

Result<DaemonKnowledge> DaemonKnowledge::create(const v1::OpenSessionReply& reply) {
  std::string daemon = "millraced " + reply.daemon_version();
  if (!reply.has_vocabulary())
    return Error{Code::kPrecondition, daemon +
                                          " does not say what it knows, so it might leave out what it is asked for; "
                                          "install the library and millraced of the same version"};
  const bool whole = covers(reply.vocabulary(), own_vocabulary());
  return DaemonKnowledge(std::move(daemon), whole ? std::nullopt : std::optional(reply.vocabulary()));
}

Result<void> DaemonKnowledge::check(const google::protobuf::Message& message) const {
  if (!partial_) return {};
  const std::optional<std::string> missing = first_missing(*partial_, message);
  if (!missing) return {};
  return Error{Code::kUnsupported, daemon_ + " does not know " + *missing + "; update millraced, or do without it"};
}

}  // namespace client
}  // namespace millrace
