// Where a session's messages leave for its client, as the publisher and the session see it. Thread-bound(control): no
// call waits for the client.
#pragma once

#include "millrace/v1/session.pb.h"
#include "proto/base/error.h"

namespace millrace {

class MessagePort {
 public:
  virtual ~MessagePort() = default;

  // Behind what was sent before. Lost without a word when the way out is at its end or the client is gone.
  virtual void send(v1::ServerMessage message) = 0;

  // A message follows within microseconds: the client may as well wake up.
  virtual void send_heads_up() = 0;
};

// The session's gRPC stream.
class StreamPort : public MessagePort {
 public:
  void send_heads_up() override {}  // gRPC's own way out costs more than it saves

  // Ends the stream with this status: after what was sent, or at once. Nothing can be sent from here on. Idempotent.
  virtual void finish(const Error& reason) = 0;
  virtual void abort(const Error& reason) = 0;
};

}  // namespace millrace
