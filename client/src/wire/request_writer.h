// A session's requests over its reply socket, the other way (proto/shm/handoff_wire.h has the bytes): without gRPC in
// between. Thread-bound(one caller at a time).
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "client/src/wire/deadline.h"
#include "client/src/wire/message_parts.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {

class RequestWriter {
 public:
  explicit RequestWriter(UniqueFd socket) : socket_(std::move(socket)) {}

  // After those before it. Waits no longer than `patience` for a daemon that is slow to take it; what is left then goes
  // with flush(). Of a daemon that reads no more, or is gone, the reader of its replies hears; here it is no error.
  void send(const MessageParts& message, Deadline patience);
  // Writes what the daemon takes until then. true: nothing is left.
  bool flush(Deadline patience);

  std::size_t unsent() const { return frames_.size(); }  // messages

 private:
  std::size_t write_at_once(const MessageParts& message, Deadline patience);
  bool wait_for_room(Deadline patience) const;
  bool write_some();

  UniqueFd socket_;
  std::deque<std::string> frames_;
  std::size_t written_ = 0;  // of the first
};

}  // namespace client
}  // namespace millrace
