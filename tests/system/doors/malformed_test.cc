// What libmillrace would never send: malformed requests, stale releases. Each is an error that names the field, and
// nothing else happens.
#include <grpcpp/generic/generic_stub.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <functional>

#include "proto/shm/segment_layout.h"
#include "tests/support/host/eventually.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

// How a stream ends on which these bytes were sent, one message after the other.
grpc::Status status_after(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                          const std::vector<std::string>& messages) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(kRawPatienceSeconds));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto call = grpc::GenericStub(channel).PrepareCall(&context, method, &queue);
  call->StartCall(&context);
  queue.Next(&tag, &ok);
  for (const std::string& message : messages) {
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), &context);
    queue.Next(&tag, &ok);
  }
  for (grpc::ByteBuffer answer; ok;) {  // the status comes behind them
    call->Read(&answer, &context);
    queue.Next(&tag, &ok);
  }
  grpc::Status status;
  call->Finish(&status, &context);
  queue.Next(&tag, &ok);
  return status;
}

TEST_CASE("a malformed batch is INVALID_ARGUMENT naming the field, and the stream goes on", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  std::uint64_t batch = 100;
  for (const Malformed& malformed : malformed_submits()) {
    v1::ClientMessage message = mill.submit(++batch);
    malformed.spoil(*message.mutable_submit());
    session.send(message);

    const v1::ServerMessage answer = session.receive();

    CAPTURE(malformed.field, answer.ShortDebugString());
    REQUIRE(answer.failed().batch_id() == batch);
    REQUIRE(answer.failed().code() == "INVALID_ARGUMENT");
    REQUIRE_THAT(answer.failed().message(), Catch::StartsWith(malformed.field));
  }
  session.send(mill.submit(1));
  REQUIRE(session.receive().completed().batch_id() == 1);
  REQUIRE(mill.daemon.metric("millrace_requests_refused_total") >= static_cast<double>(malformed_submits().size()));
}

TEST_CASE("a batch id that is under way already is refused, the first one goes on", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {.slots = 1});
  session.send(mill.submit(1));
  const v1::Completed holding = session.receive().completed();
  session.send(mill.submit(2));  // waits for the slot
  session.send(mill.submit(2));

  const v1::ServerMessage refused = session.receive();
  session.send(release_of(holding.handle()));
  const v1::ServerMessage made = session.receive();

  REQUIRE(refused.failed().code() == "INVALID_ARGUMENT");
  REQUIRE_THAT(refused.failed().message(), Catch::StartsWith("batch_id: "));
  REQUIRE(made.completed().batch_id() == 2);
}

TEST_CASE("malformed datasets and epochs are errors of theirs that name the field", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  const auto failure_of = [&](const v1::ClientMessage& message) {
    session.send(message);
    return session.receive().failed();
  };
  session.send(mill.open_dataset(1));
  REQUIRE(session.receive().dataset_opened().samples() == 8);

  v1::ClientMessage relative = mill.open_dataset(2);
  relative.mutable_open_dataset()->set_path("pictures");
  v1::ClientMessage no_batch = RawMill::start_epoch(5, 1);
  no_batch.mutable_start_epoch()->set_batch_size(0);
  v1::ClientMessage no_rank = RawMill::start_epoch(5, 1);
  no_rank.mutable_start_epoch()->set_rank(3);
  v1::ClientMessage rubbish = RawMill::start_epoch(5, 1);
  rubbish.mutable_start_epoch()->set_position("no position");

  REQUIRE_THAT(failure_of(relative).message(), Catch::StartsWith("path: "));
  REQUIRE_THAT(failure_of(mill.open_dataset(1)).message(), Catch::StartsWith("dataset_id: "));
  REQUIRE_THAT(failure_of(no_batch).message(), Catch::StartsWith("batch_size: "));
  REQUIRE_THAT(failure_of(no_rank).message(), Catch::StartsWith("rank: "));
  REQUIRE(failure_of(rubbish).code() == "INVALID_ARGUMENT");
  REQUIRE(failure_of(RawMill::start_epoch(5, 99)).code() == "NOT_FOUND");
  REQUIRE(failure_of(RawMill::start_epoch(5, 99)).stream_id() == 5);
}

TEST_CASE("text that is not UTF-8 is an error of its request that names the field, and the stream goes on",
          "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  const auto failure_of = [&](const v1::ClientMessage& message) {
    session.send(message);
    return session.receive().failed();
  };
  session.send(mill.open_dataset(1));
  REQUIRE(session.receive().dataset_opened().samples() == 8);

  v1::ClientMessage submit = mill.submit(7);
  submit.mutable_submit()->set_backend("cpu\xff");
  v1::ClientMessage dataset = mill.open_dataset(2);
  dataset.mutable_open_dataset()->add_extensions("\xe9");
  v1::ClientMessage epoch = RawMill::start_epoch(5, 1);
  epoch.mutable_start_epoch()->set_backend("\xff");
  v1::ClientMessage missing = mill.open_dataset(3);
  missing.mutable_open_dataset()->set_path(mill.folder / "\xff\xfe");

  REQUIRE_THAT(failure_of(submit).message(), Catch::StartsWith("backend: "));
  REQUIRE_THAT(failure_of(dataset).message(), Catch::StartsWith("extensions[0]: "));
  REQUIRE_THAT(failure_of(epoch).message(), Catch::StartsWith("backend: "));
  REQUIRE(failure_of(missing).code() == "NOT_FOUND");
  session.send(mill.submit(8));
  REQUIRE(session.receive().completed().batch_id() == 8);
  REQUIRE_THAT(mill.daemon.errors(), !Catch::Contains("libprotobuf"));
}

TEST_CASE("a stale or invented release is no harm to the holder of the slot", "[system]") {
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {.slots = 1});
  session.send(mill.submit(1));
  const v1::TensorHandle first = session.receive().completed().handle();
  session.send(release_of(first));
  session.send(mill.submit(2));
  const v1::TensorHandle second = session.receive().completed().handle();
  REQUIRE(second.generation() > first.generation());

  v1::TensorHandle invented = second;
  invented.set_slot(4'000'000'000);
  session.send(release_of(first));
  session.send(release_of(invented));
  for (int i = 0; i < 2; ++i) REQUIRE(session.receive().failed().code() == "FAILED_PRECONDITION");
  session.send(mill.submit(3));
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_batches_admitted_total") == 3; }));

  REQUIRE(mill.daemon.metric("millrace_slots_free") == 0);
  void* const mapped = mmap(nullptr, session.segment_bytes, PROT_READ, MAP_SHARED, session.segment.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  const auto& header =
      *reinterpret_cast<const shm::SlotHeader*>(static_cast<const std::byte*>(mapped) + sizeof(shm::SegmentHeader));
  REQUIRE(header.generation == second.generation());
  REQUIRE(header.state == static_cast<std::uint32_t>(shm::SlotState::kSealed));
  munmap(mapped, session.segment_bytes);
  session.send(release_of(second));
  REQUIRE(session.receive().completed().batch_id() == 3);
}

TEST_CASE("bytes that are no message end their stream with a status that says so", "[system]") {
  const RawMill mill;
  RawSession other(mill.daemon.socket(), {});
  const std::string rubbish = "\xff\xff\xff this is no message";
  const auto channel = raw_channel(mill.daemon.socket());
  RawHandoff handoff(mill.daemon.socket());
  handoff.hello();
  v1::OpenSessionReply opened;
  REQUIRE(raw_open(channel, open_with(handoff.ticket()), opened).ok());

  const grpc::Status first = status_after(channel, "/millrace.v1.Sessions/Stream", {rubbish});
  const std::string attach = attach_with(handoff.ticket()).SerializeAsString();
  const grpc::Status second = status_after(channel, "/millrace.v1.Sessions/Stream", {attach, rubbish});
  RawSession session(mill.daemon.socket(), {});
  const std::string frame = frame_length(static_cast<std::uint32_t>(rubbish.size())) + rubbish;
  REQUIRE(::send(session.replies.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size()));
  const grpc::Status by_socket = session.stream->finish();

  CHECK(first.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(first.error_message(), Catch::Contains("no ClientMessage"));
  CHECK(second.error_code() == grpc::StatusCode::FAILED_PRECONDITION);  // and is not parsed
  CHECK_THAT(second.error_message(), Catch::Contains("reply socket"));
  CHECK(by_socket.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(by_socket.error_message(), Catch::Contains("no ClientMessage"));
  other.send(mill.submit(1));
  REQUIRE(other.receive().completed().batch_id() == 1);
}

TEST_CASE("malformed sessions are INVALID_ARGUMENT naming the field", "[system]") {
  const RawMill mill;
  const auto channel = raw_channel(mill.daemon.socket());
  RawHandoff handoff(mill.daemon.socket());
  handoff.hello();
  const v1::OpenSessionRequest good = open_with(handoff.ticket());
  const auto error_of = [&](const std::function<void(v1::OpenSessionRequest&)>& spoil) {
    v1::OpenSessionRequest request = good;
    spoil(request);
    v1::OpenSessionReply reply;
    const grpc::Status status = raw_open(channel, request, reply);
    REQUIRE(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };

  REQUIRE_THAT(error_of([](auto& r) { r.set_slots(0); }), Catch::StartsWith("slots: "));
  REQUIRE_THAT(error_of([](auto& r) { r.set_slot_bytes(0); }), Catch::StartsWith("slot_bytes: "));
  REQUIRE_THAT(error_of([](auto& r) { r.set_name(std::string(65, 'x')); }), Catch::StartsWith("name: "));
  REQUIRE_THAT(error_of([](auto& r) { r.set_name("bell\a"); }), Catch::StartsWith("name: "));
  REQUIRE_THAT(error_of([](auto& r) { r.set_name("caf\xe9"); }), Catch::StartsWith("name: "));
  REQUIRE_THAT(error_of([](auto& r) { r.set_ticket("short"); }), Catch::StartsWith("ticket: "));
}

}  // namespace
}  // namespace millrace
