// The connections of the gRPC socket: accepted and counted here, served by gRPC. gRPC's own accepting has no limit, and
// ends for good when the process is out of descriptors once.
//
//   connect() ─▶ UnixListener ─▶ room? ─▶ hand_over(descriptor)       gRPC closes it
//                                  │      └ a duplicate stays here, on which the kernel tells the end
//                                  └ no ─▶ told why by a GOAWAY, closed
//
// It has a thread of its own, so that a flood of connections costs the control thread nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "daemon/admit/ledger.h"
#include "daemon/door/passed_listeners.h"
#include "daemon/model/in_force.h"
#include "daemon/settings/admins.h"
#include "proto/base/result.h"

namespace millrace {

inline constexpr std::uint32_t kDescriptorsPerGrpcConnection = 2;

class GrpcConnections {
 public:
  struct Options {
    std::string path;
    InForce<int> highest_descriptor = std::numeric_limits<int>::max();  // see UnixListener
    std::optional<InForce<Admins>> admins;                              // the same
    PassedListeners* passed = nullptr;                                  // the same
  };

  // Listens; errors: UnixListener's. `hand_over` gets each new connection, which is then its own, on the thread here.
  // `ledger` outlives this.
  static Result<std::unique_ptr<GrpcConnections>> create(Ledger& ledger, Options options,
                                                         std::function<void(int fd)> hand_over);
  ~GrpcConnections();  // as stop()
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // The user at the other end of `socket`, a connection that gRPC sleeps in, has sent a descriptor: all connections of
  // this user are cut off, and new ones turned away for a minute. REQUIRES: gRPC still holds `socket`.
  void expel_user_of(int socket);

  // `user` has begun too many calls, the last of them on `socket`, which gRPC has: this connection is cut off. The third
  // time within a minute all of the user's are, and new ones turned away for a minute. Not after stop().
  void cut_off(int socket, uid_t user);

  // UnixListener::leave_waiting(), on the thread here. Not after stop().
  void leave_waiting();

  // Listens no more and removes the socket file, if it is its own; `hand_over` is not called from here on. Idempotent.
  void stop();

 private:
  struct State;
  explicit GrpcConnections(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace millrace
