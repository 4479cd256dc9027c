#include "client/cli/trace/trace_call.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <optional>
#include <utility>

namespace millrace::cli {

TraceCall::TraceCall(DaemonChannel channel, HandoffConnection handoff)
    : channel_(std::move(channel)), handoff_(std::move(handoff)), stub_(v1::Statistics::NewStub(channel_.grpc())) {}

Result<TraceCall> TraceCall::connect(const std::string& socket) {
  const Deadline deadline = deadline_after(std::chrono::seconds(5));
  MILLRACE_TRY(Address address, resolve_address(socket));
  MILLRACE_TRY_VOID(probe(address, deadline));
  MILLRACE_TRY(HandoffConnection handoff, HandoffConnection::open(address, deadline));
  DaemonChannel channel(std::move(address));
  MILLRACE_TRY_VOID(channel.wait_connected(deadline));
  return TraceCall(std::move(channel), std::move(handoff));
}

// One operation at a time is under way: the call's begin, then a part, again and again, then its end.
Result<void> TraceCall::record(const Order& order, const Taker& taker) {
  constexpr std::chrono::milliseconds kAskBetween{100};
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  v1::TraceRequest request;
  request.set_seconds(order.seconds);
  request.set_session_id(order.session);
  request.set_ticket(handoff_.ticket());
  const auto reader = stub_->AsyncTrace(&context, request, &queue, nullptr);
  v1::TracePart part;
  grpc::Status status;
  std::optional<Error> failed;
  bool begun = false, ending = false, unwanted = false;
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() + kAskBetween;
    if (queue.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
      if (ending) break;
      if (ok && begun && !failed) {
        if (Result<void> taken = taker.take(part.packets()); !taken) failed = std::move(taken).error();
      }
      begun = true;
      ending = !ok;
      ok ? reader->Read(&part, nullptr) : reader->Finish(&status, nullptr);
    }
    if (unwanted || (!failed && taker.goes_on())) continue;
    unwanted = true;
    context.TryCancel();
  }
  if (failed) return *std::move(failed);
  if (unwanted || status.ok()) return {};
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    return Error{Code::kUnsupported,
                 "the daemon at " + channel_.address().target() + " is older than this program, and records nothing"};
  return channel_.explain(status, context);
}

}  // namespace millrace::cli
