// Where a session's messages leave for its client, as the publisher and the session see it. Thread-bound(control): no
// call waits for the client.
#pragma once

#include "millrace/v1/session.pb.h"

namespace millrace {

class MessagePort {
 public:
  virtual ~MessagePort() = default;

  // Leaves after what was sent before. Lost without a word once the port has ended or the client is gone.
  virtual void send(v1::ServerMessage message) = 0;

  // A message follows within microseconds: the client may as well wake up.
  virtual void send_early_wake_up() = 0;
};

}  // namespace millrace
