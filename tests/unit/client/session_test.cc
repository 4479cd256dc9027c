// A session against a scripted daemon: what it sends, what it makes of the answers, and what it says when they are
// wrong or do not come.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <set>

#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using millrace::Batch;
using millrace::Client;
using millrace::Code;
using millrace::Result;
using millrace::Session;
using millrace::SessionOptions;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

SessionOptions small(std::uint32_t slots = 4) {
  return {.slots = slots, .slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s};
}

Session open(ScriptedDaemon& daemon, std::uint32_t slots = 4) {
  auto client = Client::connect(daemon.socket());
  REQUIRE(client);
  auto session = client->open_session(small(slots));
  if (!session) FAIL(session.error().message);
  return *std::move(session);
}

millrace::Ticket submit_one(Session& session, ScriptedDaemon& daemon) {
  auto ticket = session.submit({.samples = {{.source = millrace::Path{"/data/a.jpg"}}}});
  REQUIRE(ticket);
  REQUIRE(daemon.next_message().submit().batch_id() == ticket->batch);
  return *ticket;
}

v1::ServerMessage failed_batch(std::uint64_t batch, const char* code, const char* message) {
  v1::ServerMessage answer;
  answer.mutable_failed()->set_batch_id(batch);
  answer.mutable_failed()->set_code(code);
  answer.mutable_failed()->set_message(message);
  return answer;
}

}  // namespace

TEST_CASE("a missing daemon is reported with how to start it", "[client]") {
  const auto client = Client::connect("unix:/tmp/millrace-nobody-is-here.sock");

  REQUIRE_FALSE(client);
  REQUIRE(client.error().code == Code::kUnavailable);
  REQUIRE_THAT(client.error().message,
               Catch::Contains("cannot reach the daemon at unix:/tmp/millrace-nobody-is-here.sock: No such file"));
  REQUIRE_THAT(client.error().message, Catch::Contains("systemctl start millraced"));
  REQUIRE_THAT(client.error().message, Catch::Contains("--private with millrace's commands"));
}

TEST_CASE("an address that no socket can have is refused", "[client]") {
  REQUIRE(Client::connect("tcp:localhost:1").error().code == Code::kUnsupported);
  REQUIRE(Client::connect("unix:/tmp/" + std::string(200, 'x')).error().code == Code::kInvalid);
}

TEST_CASE("a completed batch is a view of the slot and its records", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);

  daemon.send(daemon.seal(ticket.batch, 2, 5, 3, 1000));
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->id == ticket.batch);
  REQUIRE(batch->tensor.data().size() == 3000);
  REQUIRE(batch->tensor.data()[2999] == std::byte{2});
  REQUIRE(batch->tensor.as<std::uint8_t>()->size() == 3000);
  REQUIRE(batch->tensor.as<float>().error().code == Code::kPrecondition);
  REQUIRE(std::vector<std::uint64_t>(batch->tensor.shape().begin(), batch->tensor.shape().end()) ==
          std::vector<std::uint64_t>{3, 1000});
  REQUIRE(batch->tensor.labels() == std::vector<std::int64_t>{7, 8, 9});
  REQUIRE(batch->tensor.ids() == std::vector<std::uint64_t>{100, 101, 102});
  REQUIRE(batch->tensor.sample(1).flipped);
  REQUIRE(batch->tensor.sample(1).backend == "cpu");
  REQUIRE(batch->tensor.sample(0).oriented() == millrace::Size{30, 40});
  REQUIRE(batch->tensor.pixels(1).size() == 1000);
  REQUIRE(batch->tensor.pixels(3).empty());
  REQUIRE(batch->tensor.sealed_at() <= std::chrono::steady_clock::now());
  REQUIRE(batch->tensor.valid());
}

TEST_CASE("the end of a view releases its slot, once", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  daemon.send(daemon.seal(ticket.batch, 1, 9, 1, 10));
  auto batch = session.next(30s);
  REQUIRE(batch);

  millrace::TensorView moved = std::move(batch->tensor);
  batch->tensor.release();
  moved.release();
  session.cancel(ticket);

  const auto release = daemon.next_message();
  REQUIRE(release.release().slot() == 1);
  REQUIRE(release.release().generation() == 9);
  REQUIRE(daemon.next_message().has_cancel());
}

TEST_CASE("many releases leave although nobody waits on the session", "[client]") {
  constexpr std::uint32_t kSlots = 32;
  ScriptedDaemon daemon;
  Session session = open(daemon, kSlots);
  std::vector<Batch> batches;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const auto ticket = submit_one(session, daemon);
    daemon.send(daemon.seal(ticket.batch, slot, 1, 1, 10));
    auto batch = session.next(30s);
    REQUIRE(batch);
    batches.push_back(*std::move(batch));
  }

  batches.clear();

  std::set<std::uint32_t> released;
  for (std::uint32_t i = 0; i < kSlots; ++i) released.insert(daemon.next_message().release().slot());
  REQUIRE(released.size() == kSlots);
}

TEST_CASE("a stale handle is an error and nobody's pixels", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  auto message = daemon.seal(ticket.batch, 0, 5, 1, 10);
  message.mutable_completed()->mutable_handle()->set_generation(4);

  daemon.send(message);
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->failure->code == Code::kPrecondition);
  REQUIRE(batch->tensor.empty());
  REQUIRE(batch->tensor.data().empty());
}

TEST_CASE("a handle that does not lie in the segment is an error", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  auto message = daemon.seal(ticket.batch, 0, 5, 1, 10);
  auto& handle = *message.mutable_completed()->mutable_handle();
  SECTION("tensor outside") {
    handle.set_offset(~std::uint64_t{0} - 5);
  }
  SECTION("records outside") {
    handle.set_samples(1'000'000'000);
  }
  SECTION("strides outside") {
    handle.set_strides(0, ~std::uint64_t{0}), handle.set_shape(0, 3);
  }
  SECTION("shape outside") {
    handle.set_shape(1, 11);
  }
  SECTION("axes without strides") {
    handle.add_shape(1);
  }
  SECTION("another segment") {
    handle.set_segment(1);
  }

  daemon.send(message);
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->failure->code == Code::kInternal);
  REQUIRE(batch->tensor.empty());
}

TEST_CASE("elements of a type that the library does not know are an error", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  auto message = daemon.seal(ticket.batch, 0, 5, 1, 10);
  message.mutable_completed()->mutable_handle()->set_dtype(static_cast<v1::DType>(77));

  daemon.send(message);
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->failure->code == Code::kUnsupported);
  REQUIRE(batch->tensor.empty());
}

TEST_CASE("a failed batch carries its reason and its bad samples", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  auto answer = failed_batch(ticket.batch, "NOT_FOUND", "/data/a.jpg: no such file");
  auto& bad = *answer.mutable_failed()->add_errors();
  bad.set_source("/data/\\xff.jpg");
  bad.set_path("/data/\xff.jpg");
  bad.set_code("NOT_FOUND");

  daemon.send(answer);
  const auto batch = session.wait(ticket, 30s);

  REQUIRE(batch);
  REQUIRE(batch->failure->code == Code::kNotFound);
  REQUIRE(batch->errors.size() == 1);
  REQUIRE(batch->errors[0].source == "/data/\\xff.jpg");
  REQUIRE(batch->errors[0].path == "/data/\xff.jpg");
  REQUIRE(batch->errors[0].error.code == Code::kNotFound);
}

TEST_CASE("a wait that ended without a batch counts for the next one that has a slot", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto first = submit_one(session, daemon), second = submit_one(session, daemon);
  REQUIRE(session.next(50ms).error().code == Code::kDeadline);
  daemon.send(failed_batch(first.batch, "NOT_FOUND", "/data/a.jpg: no such file"));
  REQUIRE(session.wait(first, 30s)->failure);

  daemon.send(daemon.seal(second.batch, 0, 1, 1, 10));
  session.wait(second, 30s)->tensor.release();

  CHECK(daemon.next_message().release().waited_ns() >= 50'000'000);
}

TEST_CASE("waiting ends at its deadline", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  submit_one(session, daemon);

  const auto began = std::chrono::steady_clock::now();
  const auto batch = session.next(50ms);

  REQUIRE(batch.error().code == Code::kDeadline);
  REQUIRE(std::chrono::steady_clock::now() - began >= 50ms);
}

TEST_CASE("waiting for what was never asked for is an error at once", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);

  REQUIRE(session.next().error().code == Code::kPrecondition);
  REQUIRE(session.wait({77}).error().code == Code::kNotFound);
}

TEST_CASE("threads that wait for different batches each get theirs", "[client]") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  ScriptedDaemon daemon;
  Session session = open(daemon, kThreads);
  std::vector<std::future<int>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [&session] {
      int good = 0;
      for (int round = 0; round < kRounds; ++round) {
        const auto ticket = session.submit({.samples = {{.source = millrace::Path{"/x"}}}});
        const auto batch = session.wait(*ticket, 10s);
        good += batch && batch->id == ticket->batch && batch->tensor.samples() == 1 ? 1 : 0;
      }
      return good;
    }));
  }

  std::vector<std::uint32_t> free{0, 1, 2, 3};
  std::uint64_t generation = 0;
  for (int served = 0; served < kThreads * kRounds;) {
    const auto message = daemon.next_message();
    if (message.has_release()) free.push_back(message.release().slot());
    if (!message.has_submit()) continue;
    REQUIRE_FALSE(free.empty());
    daemon.send(daemon.seal(message.submit().batch_id(), free.back(), ++generation, 1, 100));
    free.pop_back();
    ++served;
  }

  for (auto& thread : threads) REQUIRE(thread.get() == kRounds);
}

TEST_CASE("what the daemon sent before it ended the session is not lost, whatever arrives first", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  daemon.send(daemon.seal(ticket.batch, 0, 1, 1, 10));
  daemon.end_at_next_message({grpc::StatusCode::UNAVAILABLE, "enough"});
  session.cancel(ticket);
  session.cancel(ticket);  // it has nowhere to go, and so hears why the stream has ended

  const auto batch = session.wait(ticket, 30s);
  const auto nothing = session.open_dataset("/data", {.timeout = 30s});

  REQUIRE(batch);
  REQUIRE(batch->tensor.valid());
  REQUIRE(nothing.error().code == Code::kUnavailable);
  REQUIRE_THAT(nothing.error().message, Catch::Contains("enough"));
}

TEST_CASE("every waiting call returns when the daemon dies", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  auto one = std::async(std::launch::async, [&] { return session.next(30s); });
  auto other = std::async(std::launch::async, [&] { return session.wait(ticket, 30s); });

  daemon.die();

  const auto first = one.get();
  REQUIRE(first.error().code == Code::kUnavailable);
  REQUIRE_THAT(first.error().message, Catch::Contains("has gone away"));
  REQUIRE(other.get().error().code == Code::kUnavailable);
  REQUIRE(session.submit({}).error().code == Code::kUnavailable);
}

TEST_CASE("a view stays readable after its session, and holds the hand-off connection until it goes", "[client]") {
  ScriptedDaemon daemon;
  std::optional<Session> session = open(daemon);
  const auto ticket = submit_one(*session, daemon);
  daemon.send(daemon.seal(ticket.batch, 0, 1, 2, 1000));
  auto batch = session->next(30s);
  REQUIRE(batch);

  session.reset();

  REQUIRE(batch->tensor.valid());
  REQUIRE(batch->tensor.data()[1999] == std::byte{1});
  batch->tensor.release();
  REQUIRE(daemon.handoff_closes());
}

TEST_CASE("a forked child is told to connect itself", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const auto ticket = submit_one(session, daemon);
  daemon.send(daemon.seal(ticket.batch, 0, 1, 1, 10));
  auto batch = session.next(30s);
  REQUIRE(batch);

  const pid_t child = ::fork();
  if (child == 0) {
    batch->tensor.release();
    const auto refused = session.submit({});
    const auto waited = session.wait({1}, 10s);
    ::_exit(refused.error().code == Code::kPrecondition && !waited ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);

  REQUIRE(status == 0);
  REQUIRE(batch->tensor.valid());
  session.cancel(ticket);
  REQUIRE(daemon.next_message().has_cancel());  // no release came from the child
}

TEST_CASE("a daemon of another version is named as such", "[client]") {
  SECTION("at the hand-off") {
    ScriptedDaemon daemon({.handoff_version = 9});
    const auto session = Client::connect(daemon.socket())->open_session(small());
    REQUIRE(session.error().code == Code::kPrecondition);
    REQUIRE_THAT(session.error().message, Catch::Contains("speaks version 9"));
  }
  SECTION("in shared memory") {
    ScriptedDaemon daemon({.segment_version = 3});
    const auto session = Client::connect(daemon.socket())->open_session(small());
    REQUIRE(session.error().code == Code::kPrecondition);
    REQUIRE_THAT(session.error().message, Catch::Contains("layout version 3"));
  }
}

TEST_CASE("a refusal at the hand-off arrives in the daemon's words", "[client]") {
  ScriptedDaemon daemon({.refusal = "limits.sessions: 64 sessions are open; raise it"});

  const auto session = Client::connect(daemon.socket())->open_session(small());

  REQUIRE(session.error().code == Code::kExhausted);
  REQUIRE(session.error().message == "limits.sessions: 64 sessions are open; raise it");
}

TEST_CASE("a session whose recipe leaves the size open asks for slot_bytes", "[client]") {
  ScriptedDaemon daemon;

  const auto session = Client::connect(daemon.socket())->open_session({.recipe = millrace::Recipe::thumbnail(320)});

  REQUIRE(session.error().code == Code::kInvalid);
  REQUIRE_THAT(session.error().message, Catch::Contains("slot_bytes"));
}

TEST_CASE("more than a message holds is refused before it is sent", "[client]") {
  v1::Limits limits;
  limits.set_message_bytes(4'000'000);
  limits.set_inline_bytes(1'000'000);
  ScriptedDaemon daemon({.limits = limits});
  Session session = open(daemon);
  const std::vector<std::byte> large(600 * 1024);
  millrace::BatchRequest inline_bytes{
      .samples = {{.source = millrace::Encoded{large}}, {.source = millrace::Encoded{large}}}};
  millrace::BatchRequest paths{
      .samples = std::vector<millrace::Sample>(5000, {.source = millrace::Path{std::string(1000, 'x')}})};

  REQUIRE_THAT(session.submit(inline_bytes).error().message, Catch::Contains("InputRing"));
  REQUIRE_THAT(session.submit(paths).error().message, Catch::Contains("messages of at most 4.0 MB; split the batch"));
  REQUIRE(session.next().error().code == Code::kPrecondition);  // nothing is under way
}

TEST_CASE("limits that the daemon does not tell are its own to check", "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  const std::vector<std::byte> large(4'000'000), too_large(5'000'000);

  const auto ticket = session.submit({.samples = {{.source = millrace::Encoded{large}}}});
  const auto no_message = session.submit({.samples = {{.source = millrace::Encoded{too_large}}}});

  CHECK_FALSE(session.limits().inline_bytes);
  CHECK(session.limits().message == millrace::Bytes{4 << 20});
  CHECK(ticket);
  CHECK_THAT(no_message.error().message, Catch::Contains("messages of at most 4.2 MB"));
}

TEST_CASE("a ring is asked of the daemon in whole pages, and its rooms come back when their batch has ended",
          "[client]") {
  ScriptedDaemon daemon;
  Session session = open(daemon);
  auto ring = session.open_ring(millrace::Bytes{5000}, 30s);
  REQUIRE(ring);
  REQUIRE(ring->size().count == 8192);
  const millrace::UniqueFd memfd = daemon.ring();

  std::optional<millrace::RingRoom> room = *ring->allocate(8192);
  room->bytes()[0] = std::byte{77};
  const auto ticket = session.submit({.samples = {{.source = *room}}});
  REQUIRE(ticket);
  room.reset();

  const auto submitted = daemon.next_message();
  REQUIRE(submitted.submit().samples(0).ring().length() == 8192);
  std::byte first{};
  REQUIRE(::pread(memfd.get(), &first, 1, 0) == 1);
  REQUIRE(first == std::byte{77});
  REQUIRE(ring->allocate(1).error().code == Code::kExhausted);
  daemon.send(failed_batch(ticket->batch, "CANCELLED", "cancelled"));
  REQUIRE(session.wait(*ticket, 30s)->failure->code == Code::kCancelled);
  REQUIRE(ring->allocate(8192));
}
