#include "client/cli/commands/admin_calls.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kPatience{60};  // the daemon may ask a directory service for names

}  // namespace

AdminCalls::AdminCalls(DaemonChannel channel, HandoffConnection handoff)
    : channel_(std::move(channel)), handoff_(std::move(handoff)), stub_(v1::Admin::NewStub(channel_.grpc())) {}

Result<AdminCalls> AdminCalls::connect(const std::string& socket) {
  const Deadline deadline = deadline_after(std::chrono::seconds(5));
  MILLRACE_TRY(Address address, resolve_address(socket));
  MILLRACE_TRY_VOID(probe(address, deadline));
  MILLRACE_TRY(HandoffConnection handoff, HandoffConnection::open(address, deadline));
  DaemonChannel channel(std::move(address));
  MILLRACE_TRY_VOID(channel.wait_connected(deadline));
  return AdminCalls(std::move(channel), std::move(handoff));
}

Error AdminCalls::explain(const grpc::Status& status, const grpc::ClientContext& context) const {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    return Error{Code::kUnsupported, "the daemon at " + channel_.address().target() +
                                         " is older than this program, and takes no such orders"};
  return channel_.explain(status, context);
}

template <class Reply, class Request, class Call>
Result<Reply> AdminCalls::ask(Request request, Call call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  request.set_ticket(handoff_.ticket());
  Reply reply;
  const grpc::Status status = (stub_.get()->*call)(&context, request, &reply);
  if (!status.ok()) return explain(status, context);
  return reply;
}

Result<v1::ReloadReply> AdminCalls::reload() {
  return ask<v1::ReloadReply>(v1::ReloadRequest(), &v1::Admin::Stub::Reload);
}

Result<v1::ResumeReply> AdminCalls::resume() {
  return ask<v1::ResumeReply>(v1::ResumeRequest(), &v1::Admin::Stub::Resume);
}

Result<v1::AdminStatusReply> AdminCalls::status() {
  return ask<v1::AdminStatusReply>(v1::AdminStatusRequest(), &v1::Admin::Stub::Status);
}

Result<v1::CloseSessionReply> AdminCalls::close_session(std::uint64_t id) {
  v1::CloseSessionRequest request;
  request.set_session_id(id);
  return ask<v1::CloseSessionReply>(std::move(request), &v1::Admin::Stub::CloseSession);
}

// One operation at a time is under way: the call's begin, then a message, again and again, then its end.
Result<v1::DrainProgress> AdminCalls::drain(bool stop, const std::function<bool(const v1::DrainProgress&)>& goes_on) {
  constexpr std::chrono::milliseconds kAskEvery{100};
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  v1::DrainRequest request;
  request.set_ticket(handoff_.ticket());
  request.set_stop(stop);
  const auto reader = stub_->AsyncDrain(&context, request, &queue, nullptr);
  v1::DrainProgress told, message;
  grpc::Status status;
  bool begun = false, ending = false, unwanted = false;
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    if (queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kAskEvery) == grpc::CompletionQueue::GOT_EVENT) {
      if (ending) break;
      if (ok && begun) told = message;
      begun = true;
      ending = !ok;
      ok ? reader->Read(&message, nullptr) : reader->Finish(&status, nullptr);
    }
    if (unwanted || goes_on(told)) continue;
    unwanted = true;
    context.TryCancel();
  }
  if (unwanted) return Error{Code::kCancelled, "nobody listens any more"};
  if (!status.ok()) return explain(status, context);
  return told;
}

}  // namespace millrace::cli
