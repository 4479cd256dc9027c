// The gRPC side of the daemon: the services of proto/rpc, health and reflection, on a Unix socket. Calls are posted to
// the control thread, which answers them.
//
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/model/cache_orders.h"
#include "daemon/model/in_force.h"
#include "daemon/model/limits.h"
#include "daemon/observe/counters.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/serve/rpc/daemon_orders.h"
#include "daemon/serve/sessions/session_table.h"
#include "daemon/settings/admins.h"
#include "proto/base/result.h"

namespace millrace {

class GrpcServer {
 public:
  struct Options {
    std::string socket;                                       // absolute path; the socket's mode is 0660
    std::string version;                                      // the daemon's, for clients
    std::string settings_file;                                // for clients, who ask what is in force; empty: none
    std::vector<std::string> roots;                           // the same
    std::function<std::vector<std::string>()> missing_roots;  // of these, those not there; empty: all are
    std::string indexes_not_kept;                             // for clients: ImageCache::hindrance()
    Bytes cache_memory;                                       // the setting, for those who ask why they wait
    InForce<Admins> admins;                                   // changed by apply()
    InForce<Limits> limits;
    std::chrono::milliseconds attach_within{10'000};                    // a stream without Attach ends
    InForce<int> highest_descriptor = std::numeric_limits<int>::max();  // see UnixListener
    PassedListeners* passed = nullptr;                                  // the same
  };
  // What the services ask; all of it outlives the server.
  struct Parts {
    boost::asio::io_context& control;
    SessionTable& sessions;
    const Pipeline& pipeline;
    Counters& counters;
    Ledger& ledger;
    CacheOrders* cache = nullptr;  // nullptr: nothing is kept
  };

  GrpcServer(Options options, const Parts& parts);
  ~GrpcServer();  // REQUIRES: shutdown() has called `done`, or `control` never ran

  // Once, first. It listens when this returns; calls are answered while `control` runs. `orders`: of administrators, and
  // outlives the server; nullptr: nobody carries any out, and there is no service Admin. Errors: UnixListener's.
  Result<void> listen(DaemonOrders* orders = nullptr);

  // Health turns to NOT_SERVING; new sessions and streams get `why` from here on, until accept_again().
  void refuse(const Error& why);
  void accept_again();  // nothing happens after shutdown()
  // UnixListener::leave_waiting(). Not after shutdown().
  void leave_waiting();

  // Of what the settings say, what is in force from here on.
  struct Live {
    std::vector<std::string> roots;
    Admins admins;
  };
  void apply(Live live);

  // Ends every stream with UNAVAILABLE, after what was sent already; calls still there at `deadline` are cut off.
  // `done` is called on the control thread when nothing of gRPC calls back any more: `control` must run until then.
  // Once.
  void shutdown(std::chrono::system_clock::time_point deadline, std::function<void()> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;  // keeps gRPC's headers out of everybody else's build
};

}  // namespace millrace
