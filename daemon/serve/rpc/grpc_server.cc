#include "daemon/serve/rpc/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/door/grpc_connections.h"
#include "daemon/door/http2_frames.h"
#include "daemon/door/peer.h"
#include "daemon/door/sleep_breaker.h"
#include "daemon/formats/format_table.h"
#include "daemon/model/stopping.h"
#include "daemon/serve/parse/parse_message.h"
#include "daemon/serve/rpc/admin_service.h"
#include "daemon/serve/rpc/cache_service.h"
#include "daemon/serve/rpc/call_meter.h"
#include "daemon/serve/rpc/explaining.h"
#include "daemon/serve/rpc/grpc_log.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "daemon/serve/rpc/statistics_service.h"
#include "daemon/serve/rpc/unary_call.h"
#include "daemon/serve/sessions/messages.h"
#include "millrace/v1/device.grpc.pb.h"
#include "millrace/v1/session.grpc.pb.h"
#include "proto/base/mutex.h"
#include "proto/base/printable.h"
#include "proto/rpc/slots_later_metadata.h"
#include "proto/rpc/status_map.h"
#include "proto/rpc/submessages.h"
#include "proto/rpc/vocabulary.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kStreamsPerConnection = 128;
// Reflection alone is served by gRPC's synchronous threads, one an open stream; beyond these it is RESOURCE_EXHAUSTED.
constexpr int kReflectionThreads = 8;
// Messages within a request for a session. The largest recipe has some two thousand.
constexpr std::size_t kOpenParts = 8'192;
constexpr std::chrono::seconds kLastWords{1};  // for what gRPC has said, until clients have it

GrpcConnections::Options connection_options(const GrpcServer::Options& options) {
  return {.path = options.socket,
          .highest_descriptor = options.highest_descriptor,
          .admins = options.admins,
          .passed = options.passed};
}

// Both are of bytes, which are looked at before they are parsed: see GrpcStream, and read_open().
using SessionsOfBytes =
    v1::Sessions::WithRawCallbackMethod_Stream<v1::Sessions::WithRawCallbackMethod_Open<v1::Sessions::Service>>;

// Nobody has shown a ticket yet, so the message has few messages within it, or it is not parsed; its bytes are few, see
// Http2Frames::kFirstMessage.
Result<OpenRequest> read_open(const grpc::ByteBuffer& bytes_untrusted) {
  grpc::Slice bytes;
  v1::OpenSessionRequest request;
  if (!bytes_untrusted.DumpToSingleSlice(&bytes).ok()) return Error{Code::kInternal, "the request cannot be read"};
  const ByteView view = std::as_bytes(std::span(bytes.begin(), bytes.size()));
  if (submessages(view, *v1::OpenSessionRequest::descriptor(), kOpenParts) > kOpenParts)
    return Error{Code::kInvalid, "the request has more than " + std::to_string(kOpenParts) + " messages within it"};
  if (!request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())))
    return Error{Code::kInvalid, "the request is no OpenSessionRequest"};
  return parse_open(request);
}

class SessionsService final : public SessionsOfBytes {
 public:
  SessionsService(StreamSurroundings& around, std::string version) : around_(around), version_(std::move(version)) {}

  grpc::ServerUnaryReactor* Open(grpc::CallbackServerContext* call, const grpc::ByteBuffer* request_untrusted,
                                 grpc::ByteBuffer* reply) override {
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    Result<OpenRequest> parsed = read_open(*request_untrusted);
    if (parsed) parsed->slots_later = call->client_metadata().contains(kSlotsLaterMetadata);
    boost::asio::post(around_.control, [this, call, reactor, reply, request = std::move(parsed)]() mutable {
      if (!request) return reactor->Finish(to_status(request.error()));
      if (around_.refusal) return reactor->Finish(answer_with(*around_.refusal, *call));
      around_.sessions.open(*std::move(request), [this, call, reactor, reply](Result<OpenedSession> opened) {
        if (opened) *reply = written(*opened);
        reactor->Finish(opened ? grpc::Status::OK : answer_with(opened.error(), *call));
      });
    });
    return reactor;
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Stream(grpc::CallbackServerContext* call) override {
    return new GrpcStream(around_, *call);  // owns itself: see there
  }

 private:
  grpc::ByteBuffer written(const OpenedSession& opened) const {
    v1::OpenSessionReply reply;
    reply.set_session_id(raw(opened.id));
    reply.set_segment_bytes(opened.segment.count);
    reply.set_slots(opened.slots);
    reply.set_slot_bytes(opened.slot_bytes.count);
    reply.set_daemon_version(version_);
    *reply.mutable_vocabulary() = vocabulary_;
    *reply.mutable_limits() = limits_message(around_.limits.now());
    v1::Memory& memory = *reply.add_memories();
    memory.set_name(std::string(kHostMemoryName));
    memory.set_bytes(opened.segment.count);
    if (opened.memory != nullptr) {
      v1::Memory& tensors = *reply.add_memories();
      const DeviceUuid device = opened.memory->device();
      tensors.set_name(opened.memory->name());
      tensors.set_bytes(opened.memory_bytes.count);
      tensors.set_device(std::string(device.begin(), device.end()));
    }
    for (const std::string_view extension : kOtherPictureExtensions) reply.add_undecoded(std::string(extension));
    const grpc::Slice bytes(reply.SerializeAsString());
    return {&bytes, 1};
  }

  StreamSurroundings& around_;
  const std::string version_;
  const v1::Vocabulary vocabulary_ = own_vocabulary();
};

class DevicesService final : public v1::Devices::CallbackService {
 public:
  DevicesService(boost::asio::io_context& control, const Pipeline& pipeline) : control_(control), pipeline_(pipeline) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* call, const v1::ListDevicesRequest* request_untrusted,
                                 v1::ListDevicesReply* reply) override {
    return answer(*call, *request_untrusted, control_, [this, reply] {
      const std::vector<BackendInfo> backends = pipeline_.backends();
      for (std::size_t i = 0; i < backends.size(); ++i) {
        v1::Device& device = *reply->add_devices();
        device.set_backend(backends[i].name);
        device.set_name(backends[i].device);
        device.set_detail(backends[i].detail);
        device.set_lanes(backends[i].lanes);
        device.set_state(pipeline_.backend_lost(i) ? v1::DEVICE_STATE_LOST : v1::DEVICE_STATE_READY);
        for (const ImageFormat format : backends[i].formats) device.add_formats(std::string(format_of(format).name));
        for (const std::string& set : backends[i].instruction_sets) device.add_instruction_sets(set);
        for (const auto& [name, value] : backends[i].properties) {
          v1::DeviceProperty& property = *device.add_properties();
          property.set_name(name);
          property.set_value(printable(value));
        }
      }
      return grpc::Status::OK;
    });
  }

 private:
  boost::asio::io_context& control_;
  const Pipeline& pipeline_;
};

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Options options, const Parts& parts)
      : options_(std::move(options)),
        parts_(parts),
        around_{.control = parts.control,
                .sessions = parts.sessions,
                .limits = options_.limits,
                .attach_within = options_.attach_within,
                .open = {},
                .unattached = {},
                .admins = options_.admins.now(),
                .refusal = {}},
        sessions_(around_, options_.version),
        devices_(parts.control, parts.pipeline),
        explaining_(around_, parts.pipeline, parts.counters, parts.ledger,
                    {.cache_memory = options_.cache_memory, .missing_roots = options_.missing_roots}),
        statistics_(parts, options_, around_, explaining_),
        cache_(around_, parts.cache) {}

  Result<void> listen(DaemonOrders* orders) {
    if (orders != nullptr)
      admin_.emplace(around_, *orders, parts_.ledger, AdminService::About{options_.version, options_.settings_file});
    take_over_grpc_log();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    configure(builder);
    server_ = builder.BuildAndStart();
    if (!server_) return Error{Code::kInternal, "gRPC does not start"};
    MILLRACE_TRY(connections_,
                 GrpcConnections::create(parts_.ledger, connection_options(options_), [this](int fd) { serve(fd); }));
    cut_off_by(connections_.get());
    MILLRACE_TRY_VOID(break_sleeps([this](int socket) { connections_->expel_user_of(socket); }));
    set_serving(true);
    explaining_.start();
    return {};
  }

  void refuse(const Error& why) {
    around_.refusal = why;
    set_serving(false);
  }

  void leave_waiting() { connections_->leave_waiting(); }

  void accept_again() {
    if (around_.stopping) return;
    around_.refusal.reset();
    set_serving(true);
  }

  void apply(Live live) {
    options_.roots = std::move(live.roots);
    options_.admins.put(live.admins);
    around_.admins = std::move(live.admins);
  }

  void shutdown(std::chrono::system_clock::time_point deadline, std::function<void()> done) {
    around_.stopping = true;
    explaining_.stop();
    refuse(stopping());
    for (GrpcStream* stream : std::vector(around_.open.begin(), around_.open.end())) stream->finish(stopping());
    statistics_.end_recordings(stopping());
    // gRPC's Shutdown waits for calls that the control thread must answer, so it waits elsewhere.
    breaker_.reset();
    cut_off_by(nullptr);
    connections_->stop();
    connections_->cut_off_all_at(deadline);
    static_cast<void>(break_sleeps([](int) {}));
    stopper_ = std::jthread([this, deadline, done = std::move(done)]() mutable {
      server_->Shutdown(deadline);
      server_->Wait();
      connections_->wait_for_ends(Clock::now() + kLastWords);
      boost::asio::post(parts_.control, std::move(done));
    });
  }

 private:
  void configure(grpc::ServerBuilder& builder) {
    builder.RegisterService(&sessions_);
    builder.RegisterService(&devices_);
    builder.RegisterService(&statistics_);
    builder.RegisterService(&cache_);
    if (admin_) builder.RegisterService(&*admin_);
    builder.RegisterCallbackGenericService(&unknown_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(Http2Frames::kFirstMessage));
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> looks_on;
    looks_on.push_back(tell_of_calls([this](int socket) { count_call(socket); }));
    builder.experimental().SetInterceptorCreators(std::move(looks_on));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
    keep_little(builder);
    builder.SetResourceQuota(grpc::ResourceQuota("reflection").SetMaxThreads(kReflectionThreads));
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  }

  // gRPC inflates a message before it looks at its size, so none may be compressed. It reads into buffers of one size, which
  // Http2Frames::kPinned counts on, and takes few bytes of a stream that nobody reads.
  static void keep_little(grpc::ServerBuilder& builder) {
    constexpr int kBuffer = 8'192, kUnread = 16'384;
    for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
      builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
    for (const char* const chunk :
         {GRPC_ARG_TCP_READ_CHUNK_SIZE, GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE, GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE})
      builder.AddChannelArgument(chunk, kBuffer);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnread);
  }

  Result<void> break_sleeps(std::function<void(int socket)> report) {
    if (kernel_refuses_descriptors()) return {};
    MILLRACE_TRY(breaker_, SleepBreaker::create(std::move(report)));
    return {};
  }

  // Calls then have it as their peer, by which call_meter.h tells whose they are.
  void serve(int fd) { grpc::AddInsecureChannelFromFd(server_.get(), fd); }

  // On gRPC's threads.
  void count_call(int socket) {
    MutexLock lock(cutting_mutex_);
    if (cutting_ == nullptr) return;
    const std::optional<UserId> user = cutting_->user_of(socket);
    if (user && !calls_.begun(raw(*user))) cutting_->cut_off(socket, *user);
  }

  void cut_off_by(GrpcConnections* connections) MILLRACE_EXCLUDES(cutting_mutex_) {
    MutexLock lock(cutting_mutex_);
    cutting_ = connections;
  }

  void set_serving(bool serving) {
    grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
    health->SetServingStatus(serving);
    for (const char* name :
         {v1::Sessions::service_full_name(), v1::Devices::service_full_name(), v1::Statistics::service_full_name(),
          v1::Cache::service_full_name(), v1::Admin::service_full_name()})
      health->SetServingStatus(name, serving);
  }

  Options options_;
  const Parts parts_;
  StreamSurroundings around_;
  SessionsService sessions_;
  DevicesService devices_;
  Explaining explaining_;
  StatisticsService statistics_;
  CacheService cache_;
  std::optional<AdminService> admin_;
  grpc::CallbackGenericService unknown_;  // UNIMPLEMENTED, as gRPC's own would say, but its calls are counted
  CallMeter calls_;
  Mutex cutting_mutex_;
  GrpcConnections* cutting_ MILLRACE_GUARDED_BY(cutting_mutex_) = nullptr;  // null: before and after it listens
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcConnections> connections_;
  std::unique_ptr<SleepBreaker> breaker_;  // none where the kernel refuses descriptors
  std::jthread stopper_;
};

GrpcServer::GrpcServer(Options options, const Parts& parts)
    : impl_(std::make_unique<Impl>(std::move(options), parts)) {}
GrpcServer::~GrpcServer() = default;

Result<void> GrpcServer::listen(DaemonOrders* orders) {
  return impl_->listen(orders);
}

void GrpcServer::refuse(const Error& why) {
  impl_->refuse(why);
}

void GrpcServer::accept_again() {
  impl_->accept_again();
}

void GrpcServer::apply(Live live) {
  impl_->apply(std::move(live));
}

void GrpcServer::leave_waiting() {
  impl_->leave_waiting();
}

void GrpcServer::shutdown(std::chrono::system_clock::time_point deadline, std::function<void()> done) {
  impl_->shutdown(deadline, std::move(done));
}

}  // namespace millrace
