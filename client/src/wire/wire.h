// A session's messages, without a thread of its own: a caller that waits reads. One waiter at a time reads (the
// leader), the others wait for it; so a message reaches a single waiter without a change of threads, and several
// waiters share one session.
//
// The session's gRPC stream begins it, with Attach and its answer, and at its end says why it has ended. All else goes and
// comes by the reply socket, whose end means that the stream ends as well. The two are not ordered: the wire has ended
// only when both have, so that nothing that the daemon sent before is lost.
//
//   for (;;) {
//     const auto seen = wire.seen();
//     if (what I wait for is there) return it;
//     if (auto ended = wire.ended()) return *ended;
//     wire.pump(seen, deadline);              // until something arrived since `seen`, or the deadline
//   }
//
// Thread-safe. Messages are given to the sink one at a time, in order, by whichever thread leads.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/deadline.h"
#include "client/src/wire/reply_reader.h"
#include "client/src/wire/request_writer.h"
#include "millrace/v1/session.pb.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {
inline namespace client {

class Wire {
 public:
  using Sink = std::function<void(v1::ServerMessage&)>;

  // Two descriptors of the reply socket: its reader lets go of one at the end, whichever thread writes at that moment.
  Wire(const DaemonChannel& channel, UniqueFd replies, UniqueFd requests);
  ~Wire();  // cancels the stream. REQUIRES: nobody is in pump()
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Begins the stream, with Attach. `sink` outlives the wire's last pump().
  void start(const std::string& ticket, Sink sink);

  // Sends a message, or queues it; waits for no answer, at most some milliseconds for it, or the one before it, to leave.
  // After the stream's end it is dropped. REQUIRES: Attached has come.
  // `images`: what is missing in a Submit.
  void send(v1::ClientMessage message, std::span<const LargeImage> images = {}) MILLRACE_EXCLUDES(mutex_);
  std::size_t unsent() const MILLRACE_EXCLUDES(mutex_);

  std::uint64_t seen() const MILLRACE_EXCLUDES(mutex_);
  void pump(std::uint64_t seen, Deadline deadline) MILLRACE_EXCLUDES(mutex_);

  // Ends the pump()s that are under way: their callers look again.
  void wake() MILLRACE_EXCLUDES(mutex_);

  // Why nothing will arrive any more: kUnavailable when the daemon went away, kPrecondition in a forked child, or the
  // daemon's reason.
  std::optional<Error> ended() const MILLRACE_EXCLUDES(mutex_);

 private:
  struct Grpc;
  enum class Event : std::uintptr_t { kStarted = 1, kRead, kWritten, kFinished };

  // These unlock while they wait.
  void lead(Deadline deadline) MILLRACE_REQUIRES(mutex_);          // REQUIRES: !leading_
  void poll_stream(Deadline deadline) MILLRACE_REQUIRES(mutex_);   // REQUIRES: !polling_
  void read_replies(Deadline deadline) MILLRACE_REQUIRES(mutex_);  // REQUIRES: leading_
  void hear_the_end() MILLRACE_REQUIRES(mutex_);                   // REQUIRES: !leading_
  void end_if_all_came() MILLRACE_REQUIRES(mutex_);
  bool handle(Event event, bool ok) MILLRACE_EXCLUDES(mutex_);  // true: something that waiters should look at
  void finish() MILLRACE_EXCLUDES(mutex_);
  bool forked() const { return ::getpid() != pid_; }

  const pid_t pid_ = ::getpid();
  const Address address_;
  std::unique_ptr<Grpc> grpc_;
  Sink sink_;
  mutable Mutex mutex_;
  Condition changed_;
  RequestWriter requests_ MILLRACE_GUARDED_BY(mutex_);
  ReplyReader replies_;  // the leader's, but for wake()
  bool leading_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool polling_ MILLRACE_GUARDED_BY(mutex_) = false;   // somebody polls the stream: the leader, or a sender
  bool attached_ MILLRACE_GUARDED_BY(mutex_) = false;  // the stream has brought its only message
  bool drained_ MILLRACE_GUARDED_BY(mutex_) = false;   // the reply socket has ended
  bool finished_ MILLRACE_GUARDED_BY(mutex_) = false;  // the stream has, and its status is there
  std::uint64_t version_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool broken_ MILLRACE_GUARDED_BY(mutex_) = false;  // no read or write will succeed any more
  std::optional<Error> ended_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace millrace
