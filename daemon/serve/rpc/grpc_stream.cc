#include "daemon/serve/rpc/grpc_stream.h"

#include <grpcpp/server_context.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/serve/parse/request_intake.h"
#include "daemon/serve/sessions/messages.h"
#include "proto/rpc/own_words.h"
#include "proto/rpc/status_map.h"
#include "proto/rpc/ticket_metadata.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kLastWriteWithin{500};  // of a stream that ends while Attached is written
constexpr std::size_t kAttachBytes = 4'096;                 // of the first message, far more than Attach has

std::optional<Ticket> ticket_in(const grpc::CallbackServerContext& call) {
  const auto found = call.client_metadata().find(kTicketMetadata);
  Ticket ticket{};
  if (found == call.client_metadata().end() || found->second.size() != ticket.size()) return std::nullopt;
  std::memcpy(ticket.data(), found->second.data(), ticket.size());
  return ticket;
}

Error no_attach() {
  return Error{Code::kPrecondition, "the first message of a stream must be Attach"};
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
  const std::size_t length = incoming_.Length();
  if (!account_ && length > kAttachBytes) return boost::asio::post(around_.control, [this] { finish(no_attach()); });
  const grpc::Status read = grpc::SerializationTraits<v1::ClientMessage>::Deserialize(&incoming_, &message_untrusted_);
  if (!read.ok()) return boost::asio::post(around_.control, [this] { finish(no_message()); });
  TakenIn taken = take_in(message_untrusted_, around_.limits.now(), *datasets_, account_.get());
  empty_for_next(message_untrusted_, Bytes{length});
  boost::asio::post(around_.control, [this, taken = std::move(taken)]() mutable {
    handle(std::move(taken.request), std::move(taken.room));
  });
}

void GrpcStream::handle(ClientRequest request, Charge room) {
  if (status_) return;
  if (session_) {
    around_.sessions.handle(*session_, std::move(request), std::move(room));
  } else {
    attach(request);
  }
  if (!status_) read_on();
}

// A user who has had more than his part of a busy control thread is read again when he has not.
void GrpcStream::read_on() {
  if (!session_ || !around_.sessions.must_wait(*session_)) return read();
  patience_.expires_after(ControlTime::kAskAgain);
  patience_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled && !status_) read_on();
  });
}

void GrpcStream::attach(const ClientRequest& request) {
  if (const auto* refused = std::get_if<RefusedRequest>(&request)) return end(to_status(refused->error));
  const auto* wanted = std::get_if<AttachRequest>(&request);
  if (wanted == nullptr) return finish(no_attach());
  Result<AttachedSession> attached = around_.sessions.attach(wanted->ticket, *this);
  if (!attached) return end(ticket_status(attached.error()));
  session_ = attached->id;
  around_.unattached.leave(*this);
  datasets_ = std::move(attached->datasets);
  account_ = std::move(attached->account);
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
