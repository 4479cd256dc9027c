// The client's end of a session's reply socket (proto/shm/handoff_wire.h has the bytes): the daemon's messages without
// gRPC in between. Thread-bound(one caller at a time), but for wake().
#pragma once

#include <functional>
#include <vector>

#include "client/src/wire/deadline.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {

class ReplyReader {
 public:
  explicit ReplyReader(UniqueFd socket);

  bool open() const { return static_cast<bool>(socket_); }  // false after the end of file, or a broken message

  // Whether the daemon has closed its end; there may still be something to read.
  bool hung_up() const;

  // Waits for messages, wake() or the deadline, whichever is first, and gives what has arrived to `sink`, in order.
  // true: messages came, or the end. false: neither. An error: the daemon sent what is no message; nothing more is
  // read.
  Result<bool> receive(Deadline deadline, const std::function<void(v1::ServerMessage&)>& sink);

  // Ends the receive() that is under way, or the next one. Any thread.
  void wake() const;

 private:
  bool wait(Deadline deadline) const;
  bool look_out();
  bool read();  // whether it brought bytes, or the end
  Result<bool> take_messages(const std::function<void(v1::ServerMessage&)>& sink);

  UniqueFd socket_;
  UniqueFd waker_;  // an eventfd
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not taken yet
  std::size_t end_ = 0;
  bool woken_early_ = false;  // the last thing that came says that a batch is ending
  v1::ServerMessage message_;
};

}  // namespace client
}  // namespace millrace
