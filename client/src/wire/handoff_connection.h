// The client's end of the hand-off socket (proto/shm/handoff_wire.h draws the exchange). As long as it is open the
// daemon keeps the session's memory; the kernel closes it when this process dies. Thread-bound(its owner).
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "client/src/wire/address.h"
#include "client/src/wire/deadline.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "proto/cuda/uuid.h"
#include "proto/shm/handoff_wire.h"

namespace millrace {
inline namespace client {

class HandoffConnection {
 public:
  // Connects, says Hello and asks for a reply socket. kUnavailable, kDenied: nobody there; kPrecondition: another
  // version; else what the daemon refuses with.
  static Result<HandoffConnection> open(const Address& address, Deadline deadline);

  const std::string& ticket() const { return ticket_; }  // kTicketBytes

  struct ReceivedSegment {
    UniqueFd fd;
    Bytes size;        // as the daemon says; not yet checked
    UniqueFd replies;  // the reply socket
  };
  // After Sessions.Open has succeeded.
  Result<ReceivedSegment> receive_segment(Deadline deadline);

  struct ReceivedMemory {
    UniqueFd fd;
    Bytes size;  // as the daemon says; not yet checked
    cuda::Uuid device{};
  };
  // A GPU's, after receive_segment(), of a session that asked for it.
  Result<ReceivedMemory> receive_memory(Deadline deadline);

  // An input ring of `size` bytes, made by the daemon: its descriptor, writable. kPrecondition: the session has one.
  Result<UniqueFd> request_ring(Bytes size, Deadline deadline);

  // Whether the daemon has closed it, or is gone. Waits for nothing.
  bool has_ended() const;

  // Tells the daemon that nothing here uses the session's memory on a GPU any more, or ever will. Before the end, likewise.
  void let_go() noexcept;

  // Tells the daemon that the session ends because its client wants it to; the memory stays until the connection goes.
  // Waits for nothing. Idempotent; nothing happens in a forked child, whose parent goes on.
  void say_goodbye() noexcept;

  ~HandoffConnection() { say_goodbye(); }
  HandoffConnection(HandoffConnection&&) noexcept = default;
  HandoffConnection& operator=(HandoffConnection&&) = delete;

 private:
  explicit HandoffConnection(UniqueFd socket) : socket_(std::move(socket)) {}
  void tell(shm::RequestKind kind) noexcept;
  Result<void> send(const shm::HandoffRequest& request, Deadline deadline);
  Result<shm::HandoffReply> receive(shm::ReplyKind expected, std::vector<UniqueFd>* descriptors, Deadline deadline);

  pid_t pid_ = ::getpid();
  UniqueFd socket_;
  std::string ticket_;
  bool said_goodbye_ = false;
};

}  // namespace client
}  // namespace millrace
