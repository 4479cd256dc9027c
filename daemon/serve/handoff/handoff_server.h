// The hand-off socket: learns from the kernel who a client is, hands it a ticket for gRPC, passes the session's
// descriptors, and notices at once when the client is gone, however it went. proto/shm/handoff_wire.h draws the
// exchange.
//
//   accepted ──Hello──▶ welcomed ──opening()──▶ opening ──send_segment()──▶ seated ──RingRequest──▶ seated
//       │ 5 s            │ 10 s ◀─not_opened()─────┤                          │
//       └────────────────┴─────────────────────────┴──────────────────────────┴─────────▶ gone
//                                                         end of file, a message out of turn, a descriptor
//
// A client that was welcomed and goes is reported once, from the event loop: Events::disconnected(). Nothing here
// blocks; connections are bounded, in all and for each user.
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

#include "daemon/admit/ledger.h"
#include "daemon/door/passed_listeners.h"
#include "daemon/memory/tensor_memory.h"
#include "daemon/model/caller.h"
#include "daemon/model/in_force.h"
#include "daemon/observe/counters.h"
#include "daemon/serve/handoff/handoff_message.h"
#include "daemon/settings/admins.h"
#include "proto/base/bytes.h"
#include "proto/base/ids.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class HandoffServer {
 public:
  // With a Goodbye before it, and LetGo as well; without: killed, or cut off.
  enum class Departure : std::uint8_t { kGoodbye, kLetGo, kGone };

  class Events {
   public:
    virtual ~Events() = default;
    // A welcomed client's connection has ended, by itself or because it broke the rules; whatever hangs on it can go.
    // Not called for the server's end.
    virtual void disconnected(ClientId client, Departure how) = 0;
    // A seated client wants an input ring: its writable descriptor. An error is passed on, and the session goes on.
    virtual Result<UniqueFd> ring_wanted(ClientId client, Bytes size_untrusted) = 0;
  };

  struct Options {
    std::string path;  // of the socket: handoff_path() of gRPC's
    std::chrono::milliseconds hello_within{5'000};
    std::chrono::milliseconds session_within{10'000};  // from Welcome to opening()
    std::optional<InForce<Admins>> admins;             // see UnixListener
    PassedListeners* passed = nullptr;                 // the same
  };

  // Listens; errors: UnixListener's. `ledger`, `counters` and `events` outlive the server.
  static Result<std::unique_ptr<HandoffServer>> create(boost::asio::io_context& control, Ledger& ledger,
                                                       Options options, Counters& counters, Events& events);
  ~HandoffServer();  // closes every connection and removes the socket file, if it is its own
  HandoffServer(const HandoffServer&) = delete;
  HandoffServer& operator=(const HandoffServer&) = delete;

  // UnixListener::leave_waiting(): who is there stays.
  void leave_waiting();

  struct Connection {
    ClientId id{};
    std::shared_ptr<const Caller> caller;  // shared: it becomes the session's and goes to fetch threads
  };
  // The welcomed client with this ticket, whether it has a session yet or not; nullopt: no such ticket, or its client
  // is gone.
  std::optional<Connection> find(const Ticket& ticket_untrusted) const;

  // The client has asked for its session, whose memory is being made, however long that takes: no time runs out. After
  // not_opened() it does again. Unknown clients: nothing happens.
  void opening(ClientId client);
  void not_opened(ClientId client);

  // It has sent a descriptor elsewhere: its user is kept out for a while, as for one that is sent here, and its connection
  // ends; disconnected() follows. Unknown clients: nothing happens.
  void expel(ClientId client);

  // Ends its connection without disconnected(). Unknown clients: nothing happens.
  void dismiss(ClientId client);

  // Passes the segment's read-only descriptor (which stays the caller's) and one end of a new reply socket, and seats
  // the client: it may stay as long as it likes, and ask for a ring. Returns the reply socket's other end.
  // kUnavailable: the client is gone, or does not read; then disconnected() follows. kExhausted: no descriptors are
  // left.
  Result<UniqueFd> send_segment(ClientId client, int read_only_fd, Bytes size);
  // After that: the descriptor of a device's memory, which stays the caller's. kUnavailable: as above.
  Result<void> send_memory(ClientId client, int fd, Bytes size, const DeviceUuid& device);

 private:
  struct State;
  explicit HandoffServer(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;  // shared: handlers that wait in the io_context hold it weakly
};

}  // namespace millrace
