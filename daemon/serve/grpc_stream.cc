#include "daemon/serve/grpc_stream.h"

#include <grpcpp/server_context.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/serve/parse_message.h"
#include "proto/rpc/own_words.h"
#include "proto/rpc/status_map.h"
#include "proto/rpc/ticket_metadata.h"

namespace millrace {
namespace {

constexpr std::size_t kMaxUnread = 16'384;  // messages that wait for the client to read
constexpr std::size_t kMaxUnreadBytes = 8'000'000;
constexpr std::chrono::milliseconds kLastWriteWithin{500};     // of an aborted stream
constexpr std::chrono::milliseconds kLastWritesWithin{5'000};  // of one that ends in peace

std::optional<Ticket> ticket_in(const grpc::CallbackServerContext& call) {
  const auto found = call.client_metadata().find(kTicketMetadata);
  Ticket ticket{};
  if (found == call.client_metadata().end() || found->second.size() != ticket.size()) return std::nullopt;
  std::memcpy(ticket.data(), found->second.data(), ticket.size());
  return ticket;
}

Error no_message() {
  return Error{Code::kInvalid,
               "what came on the stream is no ClientMessage of millrace.v1; see proto/rpc/millrace/v1/session.proto"};
}

Error unread(std::size_t messages) {
  return Error{Code::kExhausted,
               "the client leaves " + std::to_string(messages) +
                   " messages of this stream unread: read the stream all the while, in a thread of its own if need be"};
}

}  // namespace

grpc::Status ticket_status(const Error& error) {
  if (error.code == Code::kDenied) return {grpc::StatusCode::UNAUTHENTICATED, error.message};
  return to_status(error);
}

grpc::Status answer_with(const Error& error, grpc::CallbackServerContext& call) {
  if (error.code == Code::kUnavailable) call.AddTrailingMetadata(kOwnWordsMetadata, "1");
  return ticket_status(error);
}

GrpcStream::GrpcStream(StreamSurroundings& surroundings, grpc::CallbackServerContext& call)
    : around_(surroundings),
      call_(call),
      ticket_untrusted_(ticket_in(call)),
      datasets_(std::make_shared<const DatasetTable>(nullptr)),
      patience_(surroundings.control) {
  boost::asio::post(around_.control, [this] { begin(); });
}

void GrpcStream::begin() {
  around_.open.insert(this);
  if (around_.stopping) return finish(*around_.stopping);
  wait_for_attach();
  patience_.expires_after(around_.attach_within);
  patience_.async_wait([this](boost::system::error_code cancelled) {
    // Cancelled at the latest before Finish(); `this` may be gone then.
    if (!cancelled && !session_)
      finish(Error{Code::kDeadline, "no Attach came within " + std::to_string(around_.attach_within.count()) + " ms"});
  });
  read();
}

void GrpcStream::wait_for_attach() {
  std::optional<ClientId> whose;
  if (ticket_untrusted_) whose = around_.sessions.client_of(*ticket_untrusted_);
  if (GrpcStream* const gone = around_.unattached.enter(*this, whose)) {
    gone->finish(Error{Code::kExhausted, "too many streams wait for their Attach: send it at once, and the ticket as " +
                                             std::string(kTicketMetadata) + " in the call's metadata"});
  }
}

void GrpcStream::read() {
  StartRead(&incoming_);
}

void GrpcStream::OnReadDone(bool ok) {
  if (!ok) return boost::asio::post(around_.control, [this] { read_ended(); });
  const grpc::Status read = grpc::SerializationTraits<v1::ClientMessage>::Deserialize(&incoming_, &message_untrusted_);
  if (!read.ok()) return boost::asio::post(around_.control, [this] { finish(no_message()); });
  ClientRequest request =
      parse_message(message_untrusted_, around_.limits, *datasets_, std::chrono::steady_clock::now());
  message_untrusted_.Clear();
  boost::asio::post(around_.control, [this, request = std::move(request)]() mutable { handle(std::move(request)); });
}

void GrpcStream::handle(ClientRequest request) {
  if (status_) return;
  if (session_) {
    around_.sessions.handle(*session_, std::move(request));
  } else {
    attach(request);
  }
  if (!status_) read();
}

void GrpcStream::attach(const ClientRequest& request) {
  if (const auto* refused = std::get_if<RefusedRequest>(&request)) return end(to_status(refused->error));
  const auto* wanted = std::get_if<AttachRequest>(&request);
  if (wanted == nullptr) return finish(Error{Code::kPrecondition, "the first message of a stream must be Attach"});
  Result<AttachedSession> attached = around_.sessions.attach(wanted->ticket, *this);
  if (!attached) return end(ticket_status(attached.error()));
  session_ = attached->id;
  around_.unattached.leave(*this);
  datasets_ = std::move(attached->datasets);
  patience_.cancel();
}

// The client has said that it is done, or is gone.
void GrpcStream::read_ended() {
  if (status_) return;
  const StreamEnd how = call_.IsCancelled() ? StreamEnd::kBroken : StreamEnd::kByClient;
  if (session_) around_.sessions.detach(*session_, how);
  end(grpc::Status::OK);
}

void GrpcStream::send(v1::ServerMessage message) {
  if (status_ || broken_) return;
  if (writing_) {
    queued_bytes_ += message.ByteSizeLong();
    if (queue_.size() >= kMaxUnread || queued_bytes_ > kMaxUnreadBytes) {
      // The session may be in the midst of a step that sends: it hears of the end afterwards.
      boost::asio::post(around_.control, [this] { around_.sessions.detach(*session_, StreamEnd::kBroken); });
      return abort(unread(queue_.size()));
    }
  }
  queue_.push_back(std::move(message));
  pump();
}

void GrpcStream::finish(const Error& reason) {
  if (!status_) end(to_status(reason));
}

void GrpcStream::abort(const Error& reason) {
  queue_.clear();
  finish(reason);
  if (writing_) limit_writing(kLastWriteWithin);
}

void GrpcStream::end(grpc::Status status) {
  status_ = std::move(status);
  around_.unattached.leave(*this);
  if (session_) around_.sessions.stream_ends(*session_);
  pump();
  if (writing_) limit_writing(kLastWritesWithin);
}

// What the client does not take must not hold up the end.
void GrpcStream::limit_writing(std::chrono::milliseconds limit) {
  patience_.expires_after(limit);
  patience_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && writing_) call_.TryCancel();
  });
}

// At most one operation in the writing direction at a time: writes, then the end.
void GrpcStream::pump() {
  if (writing_ || finished_) return;
  if (!queue_.empty()) {
    bool own = false;
    outgoing_.Clear();
    const grpc::Status written =
        grpc::SerializationTraits<v1::ServerMessage>::Serialize(queue_.front(), &outgoing_, &own);
    MILLRACE_CHECK(written.ok());
    queue_.pop_front();
    if (queue_.empty()) queued_bytes_ = 0;
    writing_ = true;
    StartWrite(&outgoing_);
  } else if (status_) {
    finished_ = true;
    patience_.cancel();
    if (status_->error_code() == grpc::StatusCode::UNAVAILABLE) call_.AddTrailingMetadata(kOwnWordsMetadata, "1");
    Finish(*status_);
  }
}

void GrpcStream::OnWriteDone(bool ok) {
  boost::asio::post(around_.control, [this, ok] { written(ok); });
}

void GrpcStream::written(bool ok) {
  writing_ = false;
  if (!ok) {
    broken_ = true;
    queue_.clear();
  }
  pump();
}

void GrpcStream::leave() {
  if (session_) around_.sessions.detach(*session_, StreamEnd::kBroken);
  around_.unattached.leave(*this);
  around_.open.erase(this);
}

void GrpcStream::OnDone() {
  // The last reaction; whatever was posted before still finds the stream there.
  boost::asio::post(around_.control, [own = std::unique_ptr<GrpcStream>(this)] { own->leave(); });
}

}  // namespace millrace
