// A listening Unix socket of the daemon, and who may come in by it: so many connections at once in all, and so many of
// each user. When users together have all of them, a few more are for administrators, who may have to see to that, and
// for the daemon's own user, as whom a supervisor looks whether it is alive. Both sockets, gRPC's and the hand-off's, are
// one.
//
//   connect() ─▶ accepted ─▶ who is it? ─▶ room? ──▶ Events::came_in()          counts as long as its Charge
//                                            └─ no ─▶ a little later Events::turned_away(), then nothing more is said;
//                                                     closed after a second, or when kMostTurnedAway came after it
//
// When the process has no descriptor left, or none but those kept for its work, accepting pauses and goes on by itself:
// the socket listens as long as this lives. No descriptor comes in by it: see refuse_descriptors().
//
// Thread-bound(control): every call, and every call of Events, is made on the io_context's one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/admit/ledger.h"
#include "daemon/door/passed_listeners.h"
#include "daemon/model/caller.h"
#include "daemon/model/in_force.h"
#include "daemon/settings/admins.h"
#include "proto/base/error.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class UnixListener {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // `socket` does not block. `place` is kept as long as the connection is open.
    virtual void came_in(UniqueFd socket, Caller caller, Charge place) = 0;
    // The chance to tell the other side why, without waiting for it; nothing can be written to `socket` afterwards.
    virtual void turned_away(int socket, const Error& why) = 0;
  };

  static constexpr std::size_t kMostTurnedAway = 64;  // that are still heard; none once descriptors are short
  static constexpr std::uint32_t kKept = 8;           // connections beyond the limit on all, for administrators

  struct Options {
    std::string path;
    SocketType type = SocketType::kStream;
    std::string name;                                                   // begins what it says: "hand-off"
    Resource connections = Resource::kGrpcConnections;                  // what each of them is charged to
    InForce<int> highest_descriptor = std::numeric_limits<int>::max();  // above it connections wait
    std::optional<InForce<Admins>> admins;                              // for whom kKept are kept; none: nobody
    PassedListeners* passed = nullptr;  // has the socket, unless it has none at all; for create() alone
  };

  // Listens. One that was passed is taken as it is; else it makes one, mode 0660, in the place of what a dead daemon
  // left there. kPrecondition: another daemon listens there, or it is no socket, or PassedListeners::take(); kInvalid:
  // the path is too long. `ledger` and `events` outlive the listener.
  static Result<std::unique_ptr<UnixListener>> create(boost::asio::io_context& control, Ledger& ledger, Options options,
                                                      Events& events);
  ~UnixListener();  // listens no more, and removes the socket file if it made it and it is still its own
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // No more connections are taken from a listener that was passed: they wait in the kernel for the next daemon. From
  // one of its own they are, for nobody would come for them.
  void leave_waiting();

  // Connections of `user` are turned away for a minute. `deed`: what he did, for him and the log; a constant.
  void ban(uid_t user, std::string_view deed);

  static constexpr std::string_view kSentDescriptor = "sent a descriptor, which the daemon takes from nobody";

 private:
  struct State;
  explicit UnixListener(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // shared: handlers that wait in the io_context hold it weakly
};

}  // namespace millrace
