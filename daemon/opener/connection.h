// One of the daemon's connections: a request, its reply, the next one. Thread-bound(its thread), but for end().
#pragma once

#include <vector>

#include "daemon/fetch/open/opener_message.h"
#include "daemon/opener/callers.h"
#include "daemon/opener/introduction.h"
#include "daemon/opener/kerberos_mounts.h"
#include "daemon/opener/served_roots.h"
#include "daemon/opener/thread_credentials.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class OpenerConnection {
 public:
  struct Shared {  // all of it outlives the connection
    const IntroductionRules& rules;
    ServedRoots& roots;
    Callers& callers;
    KerberosMounts& kerberos;
    Suspicion& suspicion;
  };

  OpenerConnection(const Shared& shared, ConnectionNumber number, UniqueFd socket);

  // Until the daemon goes.
  void serve();
  // Has serve() return once it waits for nothing but the daemon. Thread-safe.
  void end() const;

 private:
  struct Reply {
    OpenerReplyMessage message;
    std::vector<UniqueFd> descriptors;
  };

  Reply answer(ByteView request_untrusted, std::vector<UniqueFd> descriptors);
  Reply introduce(OpenerNumber number, std::vector<UniqueFd> descriptors);
  Reply open(const OpenFilesRequest& request);
  Reply read_settings(OpenerNumber number);
  bool send(Reply reply) const;

  const Shared shared_;
  const ConnectionNumber number_;
  const UniqueFd socket_;
  ThreadCredentials credentials_;
};

}  // namespace millrace
