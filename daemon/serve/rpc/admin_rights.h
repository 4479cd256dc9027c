// Who may give orders to the daemon: a caller is known by the ticket of his hand-off connection, and is one of the
// administrators or none. Thread-bound(control).
#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>

#include "daemon/serve/rpc/grpc_stream.h"

namespace millrace {

struct AdmittedAdmin {
  grpc::Status status;  // not OK: the order is refused with that
  std::string who;      // for the log: "user 1000, pid 4711"
};

// `what`: "drain it", for the answer to one who may not. A refusal is logged, for it is somebody's mistake or worse.
AdmittedAdmin admit_admin(const StreamSurroundings& around, const std::string& ticket_untrusted,
                          const std::string& what, grpc::CallbackServerContext& call);

}  // namespace millrace
