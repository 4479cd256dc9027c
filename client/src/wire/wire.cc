#include "client/src/wire/wire.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include "millrace/v1/session.grpc.pb.h"
#include "proto/rpc/own_words.h"
#include "proto/rpc/status_map.h"
#include "proto/rpc/ticket_metadata.h"

namespace millrace {
inline namespace client {
namespace {

// gRPC takes points in time of its own clocks; the monotonic one does not jump with the wall clock.
gpr_timespec grpc_deadline(Deadline deadline) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(time_left(deadline).count(), GPR_TIMESPAN));
}

// How long a message waits for the one before it to leave. A daemon that reads takes microseconds; with one that does
// not, the message goes with the next call.
constexpr std::chrono::milliseconds kFlushWithin{5};

// How long the leader looks after an unfinished message before it looks for replies again.
constexpr std::chrono::milliseconds kSlice{1};

// How long the stream's status may take after the reply socket's end.
constexpr std::chrono::milliseconds kLastWordsWithin{100};

Error why_ended(const grpc::Status& status, const grpc::ClientContext& context, const Address& address) {
  if (!status.ok() && status.error_code() != grpc::StatusCode::UNAVAILABLE)
    return to_error(status).within("the daemon ended the session");
  if (!status.ok() && context.GetServerTrailingMetadata().count(kOwnWordsMetadata) != 0)
    return turned_down(address, status.error_message());
  const std::string reason = status.error_message().empty() ? "the connection closed" : status.error_message();
  return Error{Code::kUnavailable, "the daemon at " + address.target() + " has gone away (" + reason +
                                       "); once it runs again open a new session; an epoch goes on from its position"};
}

}  // namespace

struct Wire::Grpc {
  explicit Grpc(const DaemonChannel& channel) : stub(v1::Sessions::NewStub(channel.grpc())) {}

  std::unique_ptr<v1::Sessions::Stub> stub;
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::ClientMessage, v1::ServerMessage>> stream;
  v1::ClientMessage attach;
  v1::ServerMessage incoming;  // Attached
  grpc::Status status;

  static void* tag(Event event) { return reinterpret_cast<void*>(event); }
};

Wire::Wire(const DaemonChannel& channel, UniqueFd replies, UniqueFd requests)
    : address_(channel.address()),
      grpc_(std::make_unique<Grpc>(channel)),
      requests_(std::move(requests)),
      replies_(std::move(replies)) {}

Wire::~Wire() {
  if (forked()) {
    // gRPC's locks may be held by threads that do not exist here: leave it alone.
    static_cast<void>(grpc_.release());
    return;
  }
  grpc_->context.TryCancel();
  grpc_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (grpc_->queue.Next(&tag, &ok)) continue;  // what was under way ends at once, cancelled
}

void Wire::start(const std::string& ticket, Sink sink) {
  sink_ = std::move(sink);
  grpc_->context.AddMetadata(kTicketMetadata, ticket);
  grpc_->attach.mutable_attach()->set_ticket(ticket);
  grpc_->stream = grpc_->stub->AsyncStream(&grpc_->context, &grpc_->queue, Grpc::tag(Event::kStarted));
}

void Wire::send(v1::ClientMessage message, std::span<const LargeImage> images) {
  if (forked()) return;
  MutexLock lock(mutex_);
  if (attached_ && !leading_ && replies_.hung_up()) hear_the_end();
  if (broken_) return;
  requests_.send(MessageParts(std::move(message), images), deadline_after(kFlushWithin));
  if (requests_.unsent() > 0 && leading_) replies_.wake();  // then the leader has to see to it
}

// A write would fail, and with it the connection, before anybody has read why the stream has ended.
void Wire::hear_the_end() {
  const Deadline patience = deadline_after(kLastWordsWithin);
  while (!finished_ && !polling_ && std::chrono::steady_clock::now() < patience) poll_stream(patience);
}

std::size_t Wire::unsent() const {
  MutexLock lock(mutex_);
  return requests_.unsent();
}

std::uint64_t Wire::seen() const {
  MutexLock lock(mutex_);
  return version_;
}

std::optional<Error> Wire::ended() const {
  if (forked())
    return Error{Code::kPrecondition,
                 "this session belongs to the process that forked this one; after fork() connect a new client"};
  MutexLock lock(mutex_);
  return ended_;
}

void Wire::pump(std::uint64_t seen, Deadline deadline) {
  if (forked()) return;
  MutexLock lock(mutex_);
  while (version_ == seen && !ended_ && std::chrono::steady_clock::now() < deadline) {
    if (leading_) {
      changed_.wait_until(mutex_, deadline);
    } else {
      lead(deadline);
    }
  }
}

void Wire::wake() {
  if (forked()) return;
  MutexLock lock(mutex_);
  ++version_;
  changed_.notify_all();
  if (leading_) replies_.wake();
}

void Wire::lead(Deadline deadline) {
  leading_ = true;
  if (!attached_ || drained_) {
    if (polling_) {
      changed_.wait_until(mutex_, deadline);
    } else {
      poll_stream(deadline);
    }
  } else if (requests_.unsent() > 0) {
    // A message that the daemon is slow to take: both ways need looking after.
    const Deadline slice = std::min(deadline, deadline_after(kSlice));
    static_cast<void>(requests_.flush(Deadline::min()));
    read_replies(slice);
  } else {
    read_replies(deadline);
  }
  leading_ = false;
  changed_.notify_all();
}

void Wire::read_replies(Deadline deadline) {
  mutex_.unlock();
  const Result<bool> news = replies_.receive(deadline, sink_);
  mutex_.lock();
  if (!news) ended_ = news.error();
  if (!news || *news) ++version_;
  drained_ = !replies_.open();
  end_if_all_came();
}

// Of a stream that was never attached nothing comes by the reply socket, not even its end.
void Wire::end_if_all_came() {
  if (!finished_ || ended_ || (attached_ && !drained_)) return;
  ended_ = why_ended(grpc_->status, grpc_->context, address_);
  ++version_;
}

void Wire::poll_stream(Deadline deadline) {
  polling_ = true;
  mutex_.unlock();
  void* tag = nullptr;
  bool ok = false;
  bool news = false;
  if (grpc_->queue.AsyncNext(&tag, &ok, grpc_deadline(deadline)) == grpc::CompletionQueue::GOT_EVENT)
    news = handle(static_cast<Event>(reinterpret_cast<std::uintptr_t>(tag)), ok);
  mutex_.lock();
  polling_ = false;
  if (news) ++version_;
  changed_.notify_all();
}

bool Wire::handle(Event event, bool ok) {
  switch (event) {
    case Event::kStarted:
      if (!ok) return finish(), false;
      grpc_->stream->Read(&grpc_->incoming, Grpc::tag(Event::kRead));
      grpc_->stream->Write(grpc_->attach, Grpc::tag(Event::kWritten));
      return false;
    case Event::kRead:
      if (!ok) return finish(), false;
      sink_(grpc_->incoming);
      {
        MutexLock lock(mutex_);
        attached_ = true;
      }
      grpc_->incoming.Clear();
      grpc_->stream->Read(&grpc_->incoming, Grpc::tag(Event::kRead));
      return true;
    case Event::kWritten: {
      MutexLock lock(mutex_);
      if (!ok) broken_ = true;  // the read that is always under way says why
      return false;
    }
    case Event::kFinished: {
      MutexLock lock(mutex_);
      finished_ = true;
      end_if_all_came();
      return false;
    }
  }
  return false;
}

void Wire::finish() {
  MutexLock lock(mutex_);
  broken_ = true;
  grpc_->stream->Finish(&grpc_->status, Grpc::tag(Event::kFinished));
}

}  // namespace client
}  // namespace millrace
