// The connections of the gRPC socket: accepted and counted here, served by gRPC. gRPC's own accepting has no limit, and
// ends for good when the process is out of descriptors once.
//
//   connect() ─▶ UnixListener ─▶ room? ─▶ GrpcRelay ─▶ hand_over(descriptor)
//                                  └ no ─▶ told why by a GOAWAY, closed
//
// gRPC has one end of a pair of sockets, GrpcRelay the other one and the client's connection: see there for why.
//
// It has a thread of its own, so that a flood of connections costs the control thread nothing. Thread-safe.
#pragma once

#include <chrono>
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
#include "proto/base/ids.h"
#include "proto/base/result.h"

namespace millrace {

inline constexpr std::uint32_t kDescriptorsPerGrpcConnection = 3;

class GrpcConnections {
 public:
  struct Options {
    std::string path;
    InForce<int> highest_descriptor = std::numeric_limits<int>::max();  // see UnixListener
    std::optional<InForce<Admins>> admins;                              // the same
    PassedListeners* passed = nullptr;                                  // the same
  };

  // Listens; errors: UnixListener's. `hand_over` gets gRPC's end of each new connection, which is then its own, on the
  // thread here. `ledger` outlives this.
  static Result<std::unique_ptr<GrpcConnections>> create(Ledger& ledger, Options options,
                                                         std::function<void(int fd)> hand_over);
  ~GrpcConnections();  // as stop(); connections that are still there are cut off
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  // Whose connection gRPC has as `given`; nullopt: it has ended.
  std::optional<UserId> user_of(int given) const;

  // The user at the other end of `socket`, a client's connection, has sent a descriptor: all connections of this user are
  // cut off, and new ones turned away for a minute.
  void expel_user_of(int socket);

  // `user` has begun too many calls, the last of them on `given`: this connection is cut off. The third time within a
  // minute all of the user's are, and new ones turned away for a minute.
  void cut_off(int given, UserId user);

  // UnixListener::leave_waiting(), on the thread here. Not after stop().
  void leave_waiting();

  // Listens no more and removes the socket file, if it is its own; `hand_over` is not called from here on. Connections
  // stay. Idempotent.
  void stop();

  // Clients that are still connected at `deadline` are cut off: gRPC does not end a connection whose client takes nothing of
  // what is being written.
  void cut_off_all_at(std::chrono::system_clock::time_point deadline);

  // Waits until gRPC has closed every connection and what it said was sent on, or `deadline` has come. After stop().
  void wait_for_ends(std::chrono::steady_clock::time_point deadline);

 private:
  struct State;
  explicit GrpcConnections(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace millrace
