#include "daemon/serve/rpc/grpc_stream.h"

#include <grpcpp/server_context.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/serve/parse/parse_message.h"
#include "daemon/serve/parse/request_intake.h"
#include "daemon/serve/sessions/messages.h"
#include "proto/rpc/own_words.h"
#include "proto/rpc/status_map.h"
#include "proto/rpc/ticket_metadata.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kLastWriteWithin{500};  // of a stream that ends while Attached is written
constexpr std::size_t kAttachBytes = 4'096;                 // far more than Attach has

std::optional<Ticket> ticket_in(const grpc::CallbackServerContext& call) {
  const auto found = call.client_metadata().find(kTicketMetadata);
  Ticket ticket{};
  if (found == call.client_metadata().end() || found->second.size() != ticket.size()) return std::nullopt;
  std::memcpy(ticket.data(), found->second.data(), ticket.size());
  return ticket;
}

Error too_long() {
  return Error{Code::kPrecondition, "the first message of a stream must be Attach, which is shorter"};
}

Error one_message() {
  return Error{Code::kPrecondition, "a stream has one message, Attach: send requests by the session's reply socket"};
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
    : around_(surroundings), call_(call), ticket_untrusted_(ticket_in(call)), patience_(surroundings.control) {
  boost::asio::post(around_.control, [this] { begin(); });
}

void GrpcStream::begin() {
  around_.open.insert(this);
  if (around_.refusal) return finish(*around_.refusal);
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
  if (std::exchange(has_read_, true)) return boost::asio::post(around_.control, [this] { refuse_second(); });
  v1::ClientMessage message_untrusted;
  const bool is_short = incoming_.Length() <= kAttachBytes;
  const bool is_message =
      is_short && grpc::SerializationTraits<v1::ClientMessage>::Deserialize(&incoming_, &message_untrusted).ok();
  boost::asio::post(around_.control, [this, is_short, is_message, message = std::move(message_untrusted)] {
    if (status_) return;
    if (!is_short) return finish(too_long());
    if (!is_message) return finish(no_message());
    attach(message);
    if (!status_) read();
  });
}

// What is under way is cancelled at once: the client may leave the status unread.
void GrpcStream::refuse_second() {
  if (status_) return;
  if (session_) around_.sessions.detach(*session_, StreamEnd::kBroken);
  finish(one_message());
}

void GrpcStream::attach(const v1::ClientMessage& message_untrusted) {
  const Result<Ticket> ticket = parse_attach(message_untrusted);
  if (!ticket) return finish(ticket.error());
  const Result<SessionId> attached = around_.sessions.attach(*ticket, *this);
  if (!attached) return end(ticket_status(attached.error()));
  session_ = *attached;
  around_.unattached.leave(*this);
  patience_.cancel();
  write_attached();
}

// The client has said that it is done, or is gone.
void GrpcStream::read_ended() {
  if (status_) return;
  const StreamEnd how = call_.IsCancelled() ? StreamEnd::kBroken : StreamEnd::kByClient;
  if (session_) around_.sessions.detach(*session_, how);
  end(grpc::Status::OK);
}

void GrpcStream::write_attached() {
  bool own = false;
  const grpc::Status serialised =
      grpc::SerializationTraits<v1::ServerMessage>::Serialize(attached_message(*session_), &outgoing_, &own);
  MILLRACE_CHECK(serialised.ok());
  writing_ = true;
  StartWrite(&outgoing_);
}

// If it failed, so does the read that is under way.
void GrpcStream::OnWriteDone(bool) {
  boost::asio::post(around_.control, [this] { written(); });
}

void GrpcStream::written() {
  writing_ = false;
  if (status_) finish_call();
}

void GrpcStream::finish(const Error& reason) {
  if (!status_) end(to_status(reason));
}

void GrpcStream::end(grpc::Status status) {
  status_ = std::move(status);
  around_.unattached.leave(*this);
  if (session_) around_.sessions.stream_ends(*session_);
  if (writing_) return limit_writing();
  finish_call();
}

// What the client does not take must not hold up the end.
void GrpcStream::limit_writing() {
  patience_.expires_after(kLastWriteWithin);
  patience_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && writing_) call_.TryCancel();
  });
}

// After it `call_` may be gone.
void GrpcStream::finish_call() {
  patience_.cancel();
  if (status_->error_code() == grpc::StatusCode::UNAVAILABLE) call_.AddTrailingMetadata(kOwnWordsMetadata, "1");
  Finish(*status_);
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
