// Sessions over real sockets: opening, streaming, ending, and what a client gets for every way of doing it wrong.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "proto/base/sockets/socket_message.h"
#include "proto/shm/segment_layout.h"
#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

std::int64_t counter(Front& front, MetricId id) {
  return front.counters().stored(id);
}

v1::ClientMessage open_dataset_message(std::uint64_t id, const std::string& path) {
  v1::ClientMessage message;
  message.mutable_open_dataset()->set_dataset_id(id);
  message.mutable_open_dataset()->set_path(path);
  return message;
}

v1::ClientMessage close_dataset_message(std::uint64_t id) {
  v1::ClientMessage message;
  message.mutable_close_dataset()->set_dataset_id(id);
  return message;
}

v1::ClientMessage epoch_message(std::uint64_t dataset) {
  v1::ClientMessage message;
  v1::StartEpoch& epoch = *message.mutable_start_epoch();
  epoch.set_stream_id(3);
  epoch.set_dataset_id(dataset);
  epoch.set_batch_size(2);
  epoch.mutable_recipe()->mutable_resize()->mutable_exact()->set_width(8);
  epoch.mutable_recipe()->mutable_resize()->mutable_exact()->set_height(8);
  return message;
}

}  // namespace

TEST_CASE("an opened session hands over a segment that only the daemon can write", "[serve]") {
  Front front;
  RawClient client(front.socket());

  client.open();

  CHECK((::fcntl(client.segment(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  shm::SegmentHeader header{};
  REQUIRE(::pread(client.segment(), &header, sizeof header, 0) == sizeof header);
  CHECK(header.magic == shm::kSegmentMagic);
  CHECK(header.slots == 2);
  CHECK(::mmap(nullptr, 4'096, PROT_READ | PROT_WRITE, MAP_SHARED, client.segment(), 0) == MAP_FAILED);
  const v1::GetStatisticsReply statistics = client.statistics();
  REQUIRE(statistics.sessions_size() == 1);
  CHECK(statistics.sessions(0).name() == "test");
  CHECK(statistics.sessions(0).pid() == ::getpid());
  CHECK(statistics.sessions(0).uid() == ::geteuid());
  CHECK(statistics.sessions(0).slots_free() == 2);
}

TEST_CASE("a session is refused without a ticket, with a bad field, and twice", "[serve]") {
  Front front;
  RawClient client(front.socket());
  v1::OpenSessionRequest unknown = client.open_request();
  unknown.set_ticket(std::string(16, 'x'));
  v1::OpenSessionRequest no_slots = client.open_request(0);

  CHECK(client.open(unknown).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(client.open(no_slots).error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(client.open(no_slots).error_message() == "slots: must be at least 1, is 0");
  client.open();
  CHECK(client.open(client.open_request()).error_code() == grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_CASE("a session says which memory it wants, and is told which ones it has", "[serve]") {
  Front front;
  RawClient client(front.socket());
  v1::OpenSessionRequest wanted = client.open_request();
  wanted.set_memory("cuda:0");

  const grpc::Status refused = client.open(wanted);
  wanted.set_memory("host");
  v1::OpenSessionReply reply;
  grpc::ClientContext call;
  REQUIRE(client.sessions().Open(&call, wanted, &reply).ok());

  CHECK(refused.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(refused.error_message() ==
        "memory: there is no \"cuda:0\" here; this daemon has host; that of GPUs takes backends.cuda in its "
        "settings, or --cuda of a private daemon, and cuda.tensors over 0");
  REQUIRE(reply.memories_size() == 1);
  CHECK(reply.memories(0).name() == "host");
  CHECK(reply.memories(0).bytes() == reply.segment_bytes());
}

TEST_CASE("a session over a budget is refused with its name", "[serve]") {
  Front front({.limits = {.session = {.sessions = 3, .sessions_per_user = 2, .slots = 8}}, .segments = 1_MiB});
  RawClient client(front.socket());
  v1::OpenSessionRequest large = client.open_request();
  large.set_slot_bytes(10'000'000);
  const grpc::Status memory = client.open(large);
  const grpc::Status slots = client.open(client.open_request(9));
  RawClient first(front.socket()), second(front.socket());
  first.open();
  second.open();

  const grpc::Status users = client.open(client.open_request());

  CHECK(memory.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(memory.error_message(), Catch::Contains("memory.segments"));
  CHECK(slots.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(slots.error_message(), Catch::Contains("limits.slots"));
  CHECK(users.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(users.error_message(), Catch::Contains("limits.sessions_per_user"));
  first.hang_up();
  CHECK(eventually([&] { return client.open(client.open_request()).ok(); }));
}

TEST_CASE("a stream must begin with Attach and a good ticket, and there is one a session", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.start_stream();
  client.send(submit_message(1, {"/a"}));
  const grpc::Status no_attach = client.finish();
  client.start_stream();
  v1::ClientMessage attach;
  attach.mutable_attach()->set_ticket(std::string(16, 'x'));
  client.send(attach);
  const grpc::Status unknown = client.finish();
  client.start_stream();
  attach.mutable_attach()->set_ticket(client.ticket());
  client.send(attach);
  const grpc::Status too_early = client.finish();
  client.open();
  client.attach();
  client.say_done();
  const grpc::Status done = client.finish();
  client.start_stream();
  client.send(attach);

  const grpc::Status second = client.finish();

  CHECK(no_attach.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(unknown.error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(too_early.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(done.ok());
  CHECK(second.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_CASE("a stream on which no Attach comes is ended", "[serve]") {
  Front front({.attach_within = 20ms});
  RawClient client(front.socket());
  client.start_stream();

  const grpc::Status status = client.finish();

  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK_THAT(status.error_message(), Catch::Contains("no Attach came"));
}

TEST_CASE("a batch goes out, is mapped, and its slot comes back", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();

  REQUIRE(client.send(submit_message(7, {"/a", "/b", "/c"})));
  const std::optional<v1::ServerMessage> answer = client.read();

  REQUIRE(answer);
  REQUIRE(answer->has_completed());
  const v1::TensorHandle& handle = answer->completed().handle();
  CHECK(answer->completed().batch_id() == 7);
  REQUIRE(handle.bytes() == 3 * 192);
  std::vector<unsigned char> pixels(handle.bytes());
  REQUIRE(::pread(client.segment(), pixels.data(), pixels.size(), static_cast<off_t>(handle.offset())) ==
          static_cast<ssize_t>(pixels.size()));
  CHECK(pixels[0] == 0);
  CHECK(pixels[192] == 1);
  CHECK(pixels[575] == 2);
  CHECK(client.statistics().sessions(0).slots_free() == 1);
  CHECK(client.statistics().sessions(0).samples() == 3);
  REQUIRE(client.send(release_message(handle)));
  CHECK(eventually([&] { return client.statistics().sessions(0).slots_free() == 2; }));
}

TEST_CASE("a malformed request and a stale release are answered, and the stream goes on", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  v1::ClientMessage malformed = submit_message(1, {"relative"});
  v1::TensorHandle stale;
  stale.set_generation(9);

  client.send(malformed);
  const std::optional<v1::ServerMessage> refused = client.read();
  client.send(v1::ClientMessage());
  const std::optional<v1::ServerMessage> empty = client.read();
  client.send(release_message(stale));
  const std::optional<v1::ServerMessage> released = client.read();
  client.send(submit_message(2, {"/bad"}));
  const std::optional<v1::ServerMessage> bad = client.read();

  REQUIRE((refused && refused->has_failed()));
  CHECK(refused->failed().batch_id() == 1);
  CHECK(refused->failed().code() == "INVALID_ARGUMENT");
  CHECK_THAT(refused->failed().message(), Catch::StartsWith("samples[0].path: must be absolute"));
  REQUIRE((empty && empty->has_failed()));
  CHECK(empty->failed().subject_case() == v1::Failed::SUBJECT_NOT_SET);
  REQUIRE((released && released->has_failed()));
  CHECK(released->failed().code() == "FAILED_PRECONDITION");
  CHECK(released->failed().subject_case() == v1::Failed::SUBJECT_NOT_SET);
  REQUIRE((bad && bad->has_failed()));
  CHECK(bad->failed().batch_id() == 2);
  CHECK(bad->failed().errors(0).source() == "/bad");
  CHECK(counter(front, MetricId::requests_refused) == 3);
}

TEST_CASE("a cancelled batch is answered with CANCELLED", "[serve]") {
  Front front;
  front.fetcher().hold();
  RawClient client(front.socket());
  client.open();
  client.attach();
  v1::ClientMessage cancel;
  cancel.mutable_cancel()->set_batch_id(5);

  client.send(submit_message(5, {"/a"}));
  client.send(cancel);

  const std::optional<v1::ServerMessage> answer = client.read();
  REQUIRE((answer && answer->has_failed()));
  CHECK(answer->failed().batch_id() == 5);
  CHECK(answer->failed().code() == "CANCELLED");
}

TEST_CASE("when the stream ends, what is under way is cancelled and finished tensors stay until the connection closes",
          "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  client.send(submit_message(1, {"/a", "/b"}));
  const v1::TensorHandle handle = client.read()->completed().handle();
  front.fetcher().hold();
  client.send(submit_message(2, {"/a"}));
  REQUIRE(eventually([&] { return counter(front, MetricId::batches_admitted) == 2; }));

  client.say_done();
  CHECK(client.finish().ok());
  front.fetcher().let_go();

  CHECK(eventually([&] { return counter(front, MetricId::batches_in_flight) == 0; }));
  CHECK(counter(front, MetricId::batches_failed) == 1);
  unsigned char pixel = 0;
  REQUIRE(::pread(client.segment(), &pixel, 1, static_cast<off_t>(handle.offset() + 192)) == 1);
  CHECK(pixel == 1);
  CHECK(client.statistics().sessions_size() == 1);
  client.hang_up();
  CHECK(eventually([&] { return client.statistics().sessions_size() == 0; }));
  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
  CHECK(counter(front, MetricId::sessions_reclaimed) == 0);
}

TEST_CASE("when the hand-off connection closes, the session and all it holds is gone", "[serve]") {
  Front front;
  RawClient client(front.socket()), other(front.socket());
  client.open();
  client.attach();
  other.open();
  other.attach();
  client.send(submit_message(1, {"/a"}));
  REQUIRE(client.read()->has_completed());
  front.fetcher().hold();
  client.send(submit_message(2, {"/a"}));
  REQUIRE(eventually([&] { return counter(front, MetricId::batches_admitted) == 2; }));
  const Bytes both = front.memory_in_use();

  client.hang_up();

  CHECK(eventually([&] { return counter(front, MetricId::slots) == 2 && counter(front, MetricId::slots_free) == 2; }));
  front.fetcher().let_go();
  CHECK(eventually([&] { return front.memory_in_use().count == both.count / 2; }));
  CHECK(client.finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(eventually([&] { return counter(front, MetricId::sessions_reclaimed) == 1; }));
  other.send(submit_message(1, {"/a"}));
  CHECK(other.read()->has_completed());
}

TEST_CASE("a client that dies is told apart from one that says it is done", "[serve]") {
  Front front;
  {
    RawClient client(front.socket());
    client.open();
    client.attach();
    client.hang_up();
  }

  CHECK(eventually([&] { return counter(front, MetricId::sessions_reclaimed) == 1; }));
  CHECK(eventually([&] { return counter(front, MetricId::sessions) == 0; }));
}

TEST_CASE("a client that does not read is cut off, and its session's work with it", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  const v1::ClientMessage many_bad = submit_message(1, std::vector<std::string>(20, "/bad/" + std::string(4'000, 'a')));

  // Until the daemon ends the stream: each is answered at length, and no answer is read.
  std::uint64_t sent = 0;
  while (sent < 100'000 && client.send(many_bad)) ++sent;

  CHECK(sent < 100'000);
  const grpc::StatusCode code = client.finish().error_code();
  CHECK((code == grpc::StatusCode::RESOURCE_EXHAUSTED || code == grpc::StatusCode::CANCELLED));
  RawClient other(front.socket());
  other.open();
  other.attach();
  CHECK(other.send(submit_message(1, {"/a"})));
  CHECK(other.read()->has_completed());
}

TEST_CASE("a dataset is listed, its epoch is pushed in order, and a position comes with every batch", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();

  client.send(open_dataset_message(1, "/data"));
  const std::optional<v1::ServerMessage> progress = client.read();
  const std::optional<v1::ServerMessage> opened = client.read();
  REQUIRE((progress && progress->has_dataset_progress()));
  REQUIRE((opened && opened->has_dataset_opened()));
  CHECK(opened->dataset_opened().samples() == 5);
  CHECK(opened->dataset_opened().fingerprint() == 42);
  CHECK(opened->dataset_opened().classes(1) ==
        "d\xff"
        "g");

  client.send(epoch_message(1));
  REQUIRE(client.read()->epoch_started().batches() == 3);
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    const std::optional<v1::ServerMessage> completed = client.read();
    REQUIRE((completed && completed->has_completed()));
    CHECK(completed->completed().batch_id() == batch);
    CHECK(completed->completed().stream_id() == 3);
    CHECK_FALSE(completed->completed().position().empty());
    client.send(release_message(completed->completed().handle()));
  }
  CHECK(client.read()->epoch_ended().stream_id() == 3);
}

TEST_CASE("a dataset that cannot be listed, is unknown, or is closed too early is answered by its id", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();

  client.send(open_dataset_message(1, "/bad"));
  const std::optional<v1::ServerMessage> not_listed = client.read();
  client.send(close_dataset_message(1));
  const std::optional<v1::ServerMessage> unknown = client.read();
  front.fetcher().hold();
  client.send(open_dataset_message(2, "/data"));
  client.send(close_dataset_message(2));
  const std::optional<v1::ServerMessage> closed = client.read();
  client.send(open_dataset_message(2, "/data"));
  const std::optional<v1::ServerMessage> taken = client.read();

  CHECK(not_listed->failed().dataset_id() == 1);
  CHECK(not_listed->failed().code() == "NOT_FOUND");
  CHECK(unknown->failed().dataset_id() == 1);
  CHECK(closed->failed().dataset_id() == 2);
  CHECK(closed->failed().code() == "CANCELLED");
  CHECK(taken->failed().code() == "INVALID_ARGUMENT");
}

TEST_CASE("a session's ring is made by the daemon: writable, sealed in its size, and read from there", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();

  const RawRing made = client.ask_for_ring(5'000);

  REQUIRE(made.reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRing));
  CHECK(made.reply.segment_bytes == 5'000);
  REQUIRE(made.descriptor);
  CHECK(::pwrite(made.descriptor.get(), "x", 1, 4'999) == 1);
  CHECK(::ftruncate(made.descriptor.get(), 0) != 0);
  CHECK(::ftruncate(made.descriptor.get(), 10'000) != 0);
  CHECK(::fcntl(made.descriptor.get(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
}

TEST_CASE("a ring that cannot be is refused with the reason, and the session goes on", "[serve]") {
  FrontSetup setup;
  setup.limits.session.ring = 8_KiB;
  Front front(setup);
  RawClient client(front.socket());
  client.open();
  client.attach();

  const RawRing too_large = client.ask_for_ring(8'193);
  const RawRing made = client.ask_for_ring(8'192);
  const RawRing second = client.ask_for_ring(4'096);

  CHECK(too_large.reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused));
  CHECK_THAT(too_large.reply.message, Catch::Contains("limits.ring"));
  CHECK(made.reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRing));
  CHECK_THAT(second.reply.message, Catch::Contains("has its input ring already"));
  client.send(submit_message(1, {"/a"}));
  CHECK(client.read()->has_completed());
}

TEST_CASE("a ring without a session is refused", "[serve]") {
  Front front;
  RawClient early(front.socket());

  const RawRing refused = early.ask_for_ring(4'096);

  CHECK(refused.reply.kind == static_cast<std::uint32_t>(shm::ReplyKind::kRefused));
  CHECK_FALSE(refused.descriptor);
}
