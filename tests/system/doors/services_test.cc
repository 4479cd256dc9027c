// What other people's tools rely on: the standard health and reflection services.
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/system/support/daemon.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

using Opaque = google::protobuf::Empty;  // every field is an unknown one

const google::protobuf::UnknownFieldSet& fields_of(const Opaque& message) {
  return message.GetReflection()->GetUnknownFields(message);
}

TEST_CASE("the standard health service answers SERVING, for the daemon and each of its services", "[system]") {
  const Daemon daemon({});
  grpc::TemplatedGenericStub<Opaque, Opaque> stub(raw_channel(daemon.socket()));
  for (const std::string service : {"", "millrace.v1.Sessions", "millrace.v1.Statistics", "millrace.v1.Devices",
                                    "millrace.v1.Cache", "millrace.v1.Admin"}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(kRawPatienceSeconds));
    grpc::CompletionQueue queue;
    Opaque request, reply;
    if (!service.empty()) request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(1, service);
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
    call->StartCall();
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    REQUIRE(queue.Next(&tag, &ok));

    CAPTURE(service, status.error_message());
    REQUIRE(status.ok());
    REQUIRE(fields_of(reply).field_count() == 1);
    REQUIRE(fields_of(reply).field(0).number() == 1);
    REQUIRE(fields_of(reply).field(0).varint() == 1);  // SERVING
  }
}

// Waits for one event of `queue`.
bool next_event(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

TEST_CASE("reflection lists the daemon's services", "[system]") {
  const Daemon daemon({});
  grpc::TemplatedGenericStub<Opaque, Opaque> stub(raw_channel(daemon.socket()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(kRawPatienceSeconds));
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  REQUIRE(next_event(queue));
  Opaque request, reply;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(7, "*");  // list_services

  call->Write(request, nullptr);
  REQUIRE(next_event(queue));
  call->Read(&reply, nullptr);
  REQUIRE(next_event(queue));

  const std::string answer = reply.SerializeAsString();
  for (const char* service : {"millrace.v1.Sessions", "millrace.v1.Statistics", "millrace.v1.Devices",
                              "millrace.v1.Cache", "millrace.v1.Admin", "grpc.health.v1.Health"})
    REQUIRE_THAT(answer, Catch::Contains(service));
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next_event(queue);
}

TEST_CASE("messages that libprotobuf refuses leave no line in the daemon's log", "[system]") {
  const Daemon daemon({});
  grpc::TemplatedGenericStub<Opaque, Opaque> stub(raw_channel(daemon.socket()));
  const std::string before = daemon.errors();
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(kRawPatienceSeconds));
    grpc::CompletionQueue queue;
    const auto call =
        stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    call->StartCall(nullptr);
    REQUIRE(next_event(queue));
    Opaque request, reply;
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(7, "not UTF-8: \xff");

    call->Write(request, nullptr);
    REQUIRE(next_event(queue));
    call->Read(&reply, nullptr);
    next_event(queue);  // the call has ended: the daemon has looked at the message
    grpc::Status status;
    call->Finish(&status, nullptr);
    next_event(queue);
  }

  REQUIRE(daemon.errors() == before);
}

}  // namespace
}  // namespace millrace
