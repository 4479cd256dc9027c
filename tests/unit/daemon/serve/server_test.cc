// The gRPC server itself: its socket, its standard services, and how it stops.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <future>

#include "daemon/backend/backend.h"
#include "daemon/serve/rpc/metric_messages.h"
#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

// One message to `method` and the first answer, as bytes: health and reflection have no generated code here.
std::string call_raw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + 20s);
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(&call, method, &queue);
  const auto step = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  stream->StartCall(nullptr);
  REQUIRE(step());
  const grpc::Slice slice(request);
  stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  REQUIRE(step());
  grpc::ByteBuffer answer;
  stream->Read(&answer, nullptr);
  const bool answered = step();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  REQUIRE(step());
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
  return answered ? text_of(answer) : std::string("no answer: ") + status.error_message();
}

}  // namespace

TEST_CASE("the socket is for owner and group, and goes with the server", "[serve]") {
  struct stat status {};
  std::string path;
  {
    Front front;
    path = front.socket();
    REQUIRE(::stat(path.c_str(), &status) == 0);

    CHECK(S_ISSOCK(status.st_mode));
    CHECK((status.st_mode & 0777U) == 0660);
    front.shut_down(1s);
    CHECK(::stat(path.c_str(), &status) != 0);
  }
}

TEST_CASE("a second daemon on the same socket is refused", "[serve]") {
  Front front;
  boost::asio::io_context control;
  Counters counters;
  Ledger ledger{Budgets{}};
  PromisedMemory promised;
  SegmentMaker maker(control, promised);
  Copier copier(control);
  StandInFetcher fetcher;
  Pipeline pipeline(control, fetcher, {}, ledger, counters, {});
  const auto sessions = *SessionTable::create(control, ledger, Session::Services{pipeline, fetcher, fetcher}, maker,
                                              copier, counters, Limits{}, {.path = front.socket() + ".other"});
  GrpcServer server(
      {.socket = front.socket(), .version = "1", .limits = {}},
      {.control = control, .sessions = *sessions, .pipeline = pipeline, .counters = counters, .ledger = ledger});

  const Result<void> second = server.listen();

  REQUIRE_FALSE(second);
  CHECK(second.error().code == Code::kPrecondition);
  CHECK_THAT(second.error().message, Catch::Contains("another daemon listens on"));
  CHECK(RawClient(front.socket()).statistics().daemon_version() == "1.2.3");
}

TEST_CASE("devices and statistics answer anyone who may connect", "[serve]") {
  Front front;
  RawClient client(front.socket());
  grpc::ClientContext call;
  v1::ListDevicesReply devices;

  REQUIRE(v1::Devices::NewStub(client.channel())->List(&call, v1::ListDevicesRequest(), &devices).ok());
  const v1::GetStatisticsReply statistics = client.statistics();

  REQUIRE(devices.devices_size() == 1);
  CHECK(devices.devices(0).backend() == "cpu");
  CHECK(devices.devices(0).state() == v1::DEVICE_STATE_READY);
  CHECK(devices.devices(0).formats(0) == "jpeg");
  CHECK(statistics.pid() == ::getpid());
  REQUIRE(statistics.metrics_size() == static_cast<int>(metric_table().size() + histogram_table().size()));
  CHECK(statistics.metrics(0).name() == "millrace_sessions_opened_total");
  CHECK(statistics.metrics(0).kind() == v1::METRIC_KIND_COUNTER);
}

TEST_CASE("statistics tell figures by label, and durations by all buckets that there are", "[serve]") {
  Counters counters;
  counters.add(MetricId::requests_refused, code_name(Code::kDenied));
  for (const std::int64_t micros : {100, 100, 3'000})
    counters.add(HistogramId::fetch_latency, std::chrono::microseconds(micros));
  v1::GetStatisticsReply statistics;

  describe(counters, statistics);

  const auto metric = [&](const std::string& name) {
    for (const v1::Metric& one : statistics.metrics()) {
      if (one.name() == name) return one;
    }
    return v1::Metric();
  };
  const v1::Metric refused = metric("millrace_requests_refused_total");
  CHECK(refused.value() == 1);
  CHECK(refused.label() == "code");
  REQUIRE(refused.values_size() == 1);
  CHECK(refused.values(0).label() == "PERMISSION_DENIED");
  CHECK(refused.values(0).value() == 1);
  const v1::Metric fetch = metric("millrace_fetch_latency_seconds");
  CHECK(fetch.kind() == v1::METRIC_KIND_HISTOGRAM);
  CHECK(fetch.value() == 3);
  CHECK(fetch.sum() == Approx(0.0032));
  REQUIRE(fetch.buckets_size() == 28);  // also those beyond: a rate() over two scrapes needs them in the first one
  CHECK(fetch.buckets(6).count() == 0);
  CHECK(fetch.buckets(7).below() == Approx(0.000128));
  CHECK(fetch.buckets(7).count() == 2);
  CHECK(fetch.buckets(12).below() == Approx(0.004096));
  CHECK(fetch.buckets(12).count() == 3);
  CHECK(fetch.buckets(27).below() == std::numeric_limits<double>::infinity());
  CHECK(fetch.buckets(27).count() == 3);
  CHECK(metric("millrace_decode_latency_seconds").buckets(27).count() == 0);
}

TEST_CASE("health and reflection are there", "[serve]") {
  Front front;
  RawClient client(front.socket());
  const std::string serving("\x08\x01", 2);                     // HealthCheckResponse{status: SERVING}
  const std::string sessions = "\x0a\x14millrace.v1.Sessions";  // HealthCheckRequest{service}

  CHECK(call_raw(client.channel(), "/grpc.health.v1.Health/Check", "") == serving);
  CHECK(call_raw(client.channel(), "/grpc.health.v1.Health/Check", sessions) == serving);
  // ServerReflectionRequest{list_services: "*"}
  const std::string services =
      call_raw(client.channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  CHECK_THAT(services, Catch::Contains("millrace.v1.Sessions"));
  CHECK_THAT(services, Catch::Contains("millrace.v1.Statistics"));
  CHECK_THAT(services, Catch::Contains("grpc.health.v1.Health"));
}

TEST_CASE("a stopping server ends its streams with UNAVAILABLE, behind what was sent", "[serve]") {
  Front front;
  RawClient client(front.socket()), unattached(front.socket());
  client.open();
  client.attach();
  unattached.start_stream();
  unattached.statistics();  // by the same connection: the stream came before it
  client.send(submit_message(1, {"/a"}));
  REQUIRE(eventually([&] { return front.counters().stored(MetricId::batches_completed) == 1; }));

  front.shut_down(5s);

  CHECK(client.read()->has_completed());
  const grpc::Status status = client.finish();
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(), Catch::Contains("millraced is stopping"));
  CHECK(unattached.finish().error_code() == grpc::StatusCode::UNAVAILABLE);
}

TEST_CASE("a client that does not read cannot hold up the server's stop", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  v1::ClientMessage malformed = submit_message(1, {});
  for (int i = 0; i < 3'000; ++i) REQUIRE(client.send(malformed));
  REQUIRE(eventually([&] { return front.counters().stored(MetricId::requests_refused) == 3'000; }));

  front.shut_down(200ms);

  CHECK_FALSE(client.finish().ok());
}

TEST_CASE("a message over the limit ends only its own stream", "[serve]") {
  Front front;
  RawClient client(front.socket()), other(front.socket());
  client.open();
  client.attach();
  other.open();
  other.attach();

  client.send(submit_message(1, {std::string(5'000'000, 'a')}));

  CHECK(client.finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  other.send(submit_message(1, {"/a"}));
  CHECK(other.read()->has_completed());
}

TEST_CASE("a request for a session with more within it than any recipe has is refused before it is parsed", "[serve]") {
  Front front;
  RawClient client(front.socket());
  v1::OpenSessionRequest many = client.open_request();
  for (int i = 0; i < 10'000; ++i) many.mutable_recipe()->add_views();

  const grpc::Status status = client.open(many);

  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Catch::Contains("8192 messages within it"));
  CHECK(client.open(client.open_request()).ok());
}

TEST_CASE("a message over 64 KiB that begins a call ends the connection, and the next one serves", "[serve]") {
  Front front;
  RawClient client(front.socket());
  v1::OpenSessionRequest large = client.open_request();
  large.set_name(std::string(100'000, 'a'));

  CHECK(client.open(large).error_code() == grpc::StatusCode::UNAVAILABLE);
  RawClient next(front.socket());
  CHECK(next.open(next.open_request()).ok());
}

TEST_CASE("a stream whose first message is larger than an Attach ends before it is parsed", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.start_stream();

  client.send(submit_message(1, {std::string(50'000, 'a')}));

  const grpc::Status status = client.finish();
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Contains("must be Attach"));
}

TEST_CASE("a compressed message is refused before it is inflated", "[serve]") {
  Front front;
  RawClient client(front.socket());
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + 20s);
  call.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::OpenSessionRequest request = client.open_request();
  request.set_name(std::string(10'000, 'a'));
  v1::OpenSessionReply reply;

  CHECK(client.sessions().Open(&call, request, &reply).error_code() == grpc::StatusCode::UNIMPLEMENTED);
}
