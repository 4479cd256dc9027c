// The client's end of the hand-off socket (proto/shm/handoff_wire.h draws the exchange). As long as it is open the
// daemon keeps the session's memory; the kernel closes it when this process dies. Thread-bound(its owner).
#pragma once

#include <string>
#include <vector>

#include "client/src/address.h"
#include "client/src/deadline.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
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
    UniqueFd replies;  // the reply socket; none: replies come by the gRPC stream
  };
  // After Sessions.Open has succeeded.
  Result<ReceivedSegment> receive_segment(Deadline deadline);

  // An input ring of `size` bytes, made by the daemon: its descriptor, writable. kPrecondition: the session has one.
  Result<UniqueFd> request_ring(Bytes size, Deadline deadline);

 private:
  HandoffConnection(UniqueFd socket) : socket_(std::move(socket)) {}
  Result<void> send(const shm::HandoffRequest& request, Deadline deadline);
  Result<shm::HandoffReply> receive(shm::ReplyKind expected, std::vector<UniqueFd>* descriptors, Deadline deadline);

  UniqueFd socket_;
  std::string ticket_;
};

}  // namespace client
}  // namespace millrace
