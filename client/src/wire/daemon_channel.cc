#include "client/src/wire/daemon_channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include "client/src/wire/figures.h"
#include "client/src/wire/health_answer.h"
#include "client/src/wire/turned_away.h"
#include "millrace/v1/cache.grpc.pb.h"
#include "millrace/v1/device.grpc.pb.h"
#include "millrace/v1/session.grpc.pb.h"
#include "millrace/v1/statistics.grpc.pb.h"
#include "proto/rpc/own_words.h"
#include "proto/rpc/slots_later_metadata.h"
#include "proto/rpc/status_map.h"

namespace millrace {
inline namespace client {
namespace {

gpr_timespec grpc_time(Deadline deadline) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(time_left(deadline).count(), GPR_TIMESPAN));
}

Error no_room(const Address& address, const std::string& daemons_words) {
  return Error{Code::kExhausted,
               "the daemon at " + address.target() + " has no room for this connection: " + daemons_words};
}

// Longer than it takes to connect to a socket that somebody listens at.
constexpr std::chrono::seconds kProbeWithin{1};

Error unreachable(const Address& address, std::string_view why) {
  if (const auto full = turned_away(address)) return no_room(address, *full);
  if (probe(address, deadline_after(kProbeWithin))) return no_answer(address, why);
  return cannot_reach(address, Code::kUnavailable, why);
}

// The error of a call that failed: an unreachable daemon is explained, everything else is what the daemon says.
Error call_error(const grpc::Status& status, const grpc::ClientContext& context, const Address& address) {
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE &&
      context.GetServerTrailingMetadata().count(kOwnWordsMetadata) != 0)
    return turned_down(address, status.error_message());
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return unreachable(address, status.error_message());
  if (status.error_code() == grpc::StatusCode::CANCELLED)  // not by us: by a server that shuts down
    return turned_down(address, "millraced is stopping, and has ended the call");
  Error error = to_error(status);
  if (error.code == Code::kDeadline)
    error.message = "the daemon at " + address.target() +
                    " did not answer in time; if that lasts, `journalctl -u millraced` says why";
  return error;
}

// The same for calls that older daemons do not know. `lack`: "its cache can neither be dropped nor verified".
Error later_call_error(const grpc::Status& status, const grpc::ClientContext& context, const Address& address,
                       std::string_view lack) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    return Error{Code::kUnsupported,
                 "the daemon at " + address.target() + " is older than this program: " + std::string(lack)};
  return call_error(status, context, address);
}

Error order_error(const grpc::Status& status, const grpc::ClientContext& context, const Address& address) {
  return later_call_error(status, context, address, "its cache can neither be dropped nor verified");
}

Device to_device(const v1::Device& device) {
  Device found{.backend = device.backend(),
               .name = device.name(),
               .ready = device.state() == v1::DEVICE_STATE_READY,
               .lanes = device.lanes(),
               .formats = {device.formats().begin(), device.formats().end()},
               .detail = device.detail(),
               .instruction_sets = {device.instruction_sets().begin(), device.instruction_sets().end()}};
  for (const auto& property : device.properties()) found.properties.push_back({property.name(), property.value()});
  return found;
}

}  // namespace

DaemonChannel::DaemonChannel(Address address) : address_(std::move(address)) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(64 << 20);  // a dataset's class names, a batch's errors
  channel_ = grpc::CreateCustomChannel(address_.target(), grpc::InsecureChannelCredentials(), arguments);
}

DaemonChannel::~DaemonChannel() = default;

Error DaemonChannel::explain(const grpc::Status& status, const grpc::ClientContext& context) const {
  return call_error(status, context, address_);
}

Result<void> DaemonChannel::wait_connected(Deadline deadline) const {
  constexpr int kMostEnds = 3;  // of connections, before it passes for no daemon of ours
  int ends = 0;
  grpc_connectivity_state state = channel_->GetState(true);
  while (state != GRPC_CHANNEL_READY) {
    if (!channel_->WaitForStateChange(state, grpc_time(deadline)))
      return unreachable(address_, "no answer in time, of millraced or of what else listens there");
    // A daemon without room ends the connection in order, and gRPC would make another one at once, and so on. So does
    // one that stops: then another may follow.
    state = channel_->GetState(false);
    if (state != GRPC_CHANNEL_IDLE) continue;
    if (const auto full = turned_away(address_)) return no_room(address_, *full);
    if (++ends == kMostEnds) return no_answer(address_, "the process that listens there ends every connection");
    state = channel_->GetState(true);
  }
  return {};
}

Result<v1::OpenSessionReply> DaemonChannel::open(const v1::OpenSessionRequest& request, Deadline deadline) const {
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  context.AddMetadata(kSlotsLaterMetadata, "1");  // see Holding
  v1::OpenSessionReply reply;
  const grpc::Status status = v1::Sessions::NewStub(channel_)->Open(&context, request, &reply);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    return Error{Code::kDeadline, "open_session: the daemon at " + address_.target() +
                                      " did not make the session's memory in time; give it a longer timeout"};
  if (!status.ok()) return call_error(status, context, address_);
  return reply;
}

// grpc.health.v1.Health/Check for the whole server: the request is empty bytes.
Result<std::chrono::nanoseconds> DaemonChannel::check_health(Deadline deadline) const {
  const auto began = std::chrono::steady_clock::now();
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  grpc::CompletionQueue queue;
  grpc::ByteBuffer reply;
  grpc::Status status;
  auto call = grpc::GenericStub(channel_).PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                                           grpc::ByteBuffer(nullptr, 0), &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);  // the context's deadline bounds it
  if (!status.ok()) return call_error(status, context, address_);
  if (!says_serving(reply))
    return turned_down(address_,
                       "millraced is stopping or draining: it finishes what is under way and takes nothing new");
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - began);
}

Result<Statistics> DaemonChannel::statistics(Deadline deadline) const {
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  v1::GetStatisticsReply reply;
  const grpc::Status status = v1::Statistics::NewStub(channel_)->Get(&context, {}, &reply);
  if (!status.ok()) return call_error(status, context, address_);
  return to_statistics(reply);
}

Result<std::vector<Device>> DaemonChannel::devices(Deadline deadline) const {
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  v1::ListDevicesReply reply;
  const grpc::Status status = v1::Devices::NewStub(channel_)->List(&context, {}, &reply);
  if (!status.ok()) return call_error(status, context, address_);
  std::vector<Device> devices;
  for (const auto& device : reply.devices()) devices.push_back(to_device(device));
  return devices;
}

Result<std::vector<SessionFindings>> DaemonChannel::explain(const std::string& ticket, std::uint64_t session,
                                                            bool history, Deadline deadline) const {
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  v1::ExplainRequest request;
  request.set_ticket(ticket);
  request.set_session_id(session);
  request.set_history(history);
  v1::ExplainReply reply;
  const grpc::Status status = v1::Statistics::NewStub(channel_)->Explain(&context, request, &reply);
  if (!status.ok()) return later_call_error(status, context, address_, "it cannot say why sessions wait");
  return to_findings(reply);
}

Result<DroppedCache> DaemonChannel::drop_cache(const std::string& ticket, const DropCache& what,
                                               Deadline deadline) const {
  grpc::ClientContext context;
  context.set_deadline(grpc_time(deadline));
  v1::DropCacheRequest request;
  request.set_ticket(ticket);
  request.set_memory(what.memory);
  request.set_disk(what.disk);
  v1::DropCacheReply reply;
  const grpc::Status status = v1::Cache::NewStub(channel_)->Drop(&context, request, &reply);
  if (!status.ok()) return order_error(status, context, address_);
  return DroppedCache{.memory_entries = reply.memory_entries(),
                      .memory_bytes = Bytes{reply.memory_bytes()},
                      .disk_entries = reply.disk_entries(),
                      .disk_bytes = Bytes{reply.disk_bytes()},
                      .disk_entries_left = reply.disk_entries_left()};
}

// One operation at a time is under way: the call's begin, then a message, again and again, then its end.
Result<VerifiedCache> DaemonChannel::verify_cache(const std::string& ticket,
                                                  const std::function<bool(const VerifiedCache&)>& goes_on,
                                                  std::chrono::milliseconds silence) const {
  constexpr std::chrono::milliseconds kAskEvery{200};
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  v1::VerifyCacheRequest request;
  request.set_ticket(ticket);
  const auto reader = v1::Cache::NewStub(channel_)->AsyncVerify(&context, request, &queue, nullptr);
  VerifiedCache found;
  v1::VerifyCacheProgress message;
  grpc::Status status;
  bool begun = false, ending = false, unwanted = false, silent = false, finished = false;
  Deadline patience = deadline_after(silence);
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue.AsyncNext(&tag, &ok, grpc_time(deadline_after(kAskEvery)));
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      if (ending) break;
      if (ok && begun) {
        found = {.entries = message.entries(), .all = message.all(), .wrong = message.wrong()};
        finished = message.finished();
        patience = deadline_after(silence);
      }
      begun = true;
      ending = !ok;
      ok ? reader->Read(&message, nullptr) : reader->Finish(&status, nullptr);
    }
    if (unwanted || silent) continue;
    unwanted = goes_on && !goes_on(found);
    silent = time_left(patience).count() == 0;
    if (unwanted || silent) context.TryCancel();
  }
  if (unwanted) return Error{Code::kCancelled, "verifying was ended before it was through"};
  if (status.ok() && finished) return found;
  if (silent) return Error{Code::kDeadline, "the daemon at " + address_.target() + " said nothing for too long"};
  if (status.ok()) return turned_down(address_, "millraced has ended the call before it was through");
  return order_error(status, context, address_);
}

}  // namespace client
}  // namespace millrace
