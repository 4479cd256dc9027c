// Requests that come by the reply socket: frames whole and in pieces, in order, and what is none.
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "daemon/model/limits.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/http2_connection.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

struct Attached {
  explicit Attached(Front& front) : client(front.socket()) {
    client.open();
    client.attach();
  }
  // Waits as long as the daemon leaves it unread.
  void write(const std::string& bytes) {
    const char* at = bytes.data();
    for (std::size_t left = bytes.size(); left > 0;) {
      const ssize_t sent = ::send(client.replies(), at, left, MSG_NOSIGNAL);
      REQUIRE(sent > 0);
      at += sent;
      left -= static_cast<std::size_t>(sent);
    }
  }
  std::uint64_t next_batch() {
    const auto message = read_reply(client.replies());
    REQUIRE(message);
    return message->has_completed() ? message->completed().batch_id() : message->failed().batch_id();
  }

  RawClient client;
};

// More than is parsed on the control thread, for each path is looked at. The daemon refuses it, for it is far too large for a slot.
v1::ClientMessage large_submit(std::uint64_t batch) {
  return submit_message(batch, std::vector<std::string>(4'000, "/" + std::string(100, 'a')));
}

}  // namespace

TEST_CASE("requests come by the reply socket alone", "[serve]") {
  Front front;
  Attached session(front);

  session.write(framed(submit_message(1, {"/a", "/b"})));
  const auto completed = read_reply(session.client.replies());
  REQUIRE(completed);
  CHECK(completed->completed().batch_id() == 1);
  CHECK(completed->completed().handle().samples() == 2);
  CHECK(session.client.statistics().sessions(0).slots_free() == 1);

  session.write(framed(release_message(completed->completed().handle())));
  CHECK(eventually([&] { return session.client.statistics().sessions(0).slots_free() == 2; }));
}

TEST_CASE("a second message on the stream ends the session, and says why", "[serve]") {
  Front front;
  Attached session(front);

  REQUIRE(session.client.send_by_stream(submit_message(2, {"/b"})));

  CHECK_FALSE(session.client.read());
  const grpc::Status status = session.client.finish();
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Contains("reply socket"));
}

TEST_CASE("a second message on the stream cancels what is under way, though the client reads nothing", "[serve]") {
  constexpr std::uint32_t kAnswers = 90;  // unread ones fill the socket, so that the stream's status stays behind them
  Front front;
  RawClient client(front.socket()), other(front.socket());
  client.open();
  Http2Connection connection(front.socket());
  std::string bytes = http2_frame(Http2Frame::kSettings, 0, 0, std::string("\0\4\x7f\xff\xff\xff", 6)) +
                      http2_frame(Http2Frame::kWindowUpdate, 0, 0, std::string("\x7f\0\0\0", 4));
  bytes += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, 1, call_headers("/millrace.v1.Sessions/Stream"));
  const std::string attach = attach_message(client.ticket()).SerializeAsString();
  const std::string message = grpc_message(static_cast<std::uint32_t>(attach.size()), attach);
  bytes += http2_frame(Http2Frame::kData, 0, 1, message);
  REQUIRE(connection.send(bytes));
  front.fetcher().hold();
  REQUIRE(send_request(client.replies(), submit_message(1, {"/a"})));
  REQUIRE(eventually([&] { return front.counters().stored(MetricId::batches_in_flight) == 1; }));
  bytes.clear();
  for (std::uint32_t call = 3; call < 3 + 2 * kAnswers; call += 2) {
    bytes += http2_frame(Http2Frame::kHeaders, kHttp2EndHeaders, call, call_headers("/millrace.v1.Statistics/Get"));
    bytes += http2_frame(Http2Frame::kData, kHttp2EndStream, call, grpc_message(0, {}));
  }
  REQUIRE(connection.send(bytes));
  other.statistics();  // behind them

  REQUIRE(connection.send(http2_frame(Http2Frame::kData, 0, 1, message)));

  CHECK(eventually([&] { return front.fetcher().holds_stopped_work(); }));
}

TEST_CASE("frames may come in pieces, several at once, and before the session is attached", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  const std::string early = framed(submit_message(1, {"/a"}));
  REQUIRE(::send(client.replies(), early.data(), early.size(), 0) == static_cast<ssize_t>(early.size()));
  client.attach();
  const auto first = read_reply(client.replies());
  REQUIRE(first);
  CHECK(first->completed().batch_id() == 1);
  client.send(release_message(first->completed().handle()));

  Attached session(front);
  for (const char byte : framed(submit_message(2, {"/b"}))) session.write(std::string(1, byte));
  const auto second = read_reply(session.client.replies());
  REQUIRE(second);
  CHECK(second->completed().batch_id() == 2);

  std::string many = framed(release_message(second->completed().handle()));
  for (std::uint64_t batch = 10; batch < 300; ++batch) many += framed(submit_message(batch, {}));  // refused, each
  session.write(many);
  for (std::uint64_t batch = 10; batch < 300; ++batch) REQUIRE(session.next_batch() == batch);
}

TEST_CASE("a large request is not overtaken by those behind it", "[serve]") {
  Front front;
  Attached session(front);
  const std::string large = framed(large_submit(1));
  REQUIRE(large.size() > RequestReader::kLookedAtHere.count);

  session.write(large + framed(submit_message(2, {})) + framed(large_submit(3)) + framed(large_submit(4)) +
                framed(submit_message(5, {"/a"})));

  for (std::uint64_t batch = 1; batch <= 5; ++batch) REQUIRE(session.next_batch() == batch);
}

TEST_CASE("what is no request ends its session alone, and says why", "[serve]") {
  Front front;
  Attached other(front);
  Attached session(front);

  SECTION("bytes that are no message") {
    session.write(frame_length(3) + "\x0F\xFF\xFF");
    const grpc::Status status = session.client.finish();
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK_THAT(status.error_message(), Catch::Contains("is no ClientMessage"));
  }
  SECTION("many bytes that are no message") {
    session.write(frame_length(300'000) + std::string(300'000, '\xFF'));
    CHECK(session.client.finish().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  }
  SECTION("a length beyond the limit, of which nothing else comes") {
    session.write(frame_length(static_cast<std::uint32_t>(kMessageMost.count) + 1));
    const grpc::Status status = session.client.finish();
    CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    CHECK_THAT(status.error_message(), Catch::Contains("at most 4194304 are taken"));
  }
  SECTION("the largest length that there is") {
    session.write(frame_length(~0U) + "more");
    CHECK(session.client.finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  }

  CHECK_FALSE(read_reply(session.client.replies()));
  other.write(framed(submit_message(1, {"/a"})));
  CHECK(other.next_batch() == 1);
}

TEST_CASE("a request that makes no sense is refused, and the session goes on", "[serve]") {
  Front front;
  Attached session(front);
  v1::ClientMessage attach;
  attach.mutable_attach()->set_ticket(session.client.ticket());

  session.write(frame_length(0));
  const auto empty = read_reply(session.client.replies());
  session.write(framed(attach));
  const auto attached = read_reply(session.client.replies());
  session.write(framed(submit_message(1, {"/a"})));

  REQUIRE(empty);
  CHECK_THAT(empty->failed().message(), Catch::Contains("empty"));
  REQUIRE(attached);
  CHECK_THAT(attached->failed().message(), Catch::Contains("has been sent"));
  CHECK(session.next_batch() == 1);
}

TEST_CASE("a client that writes no more is still answered, and half a request counts for nothing", "[serve]") {
  Front front;
  Attached session(front);

  session.write(framed(submit_message(1, {"/a"})) + framed(submit_message(2, {"/b"})).substr(0, 9));
  ::shutdown(session.client.replies(), SHUT_WR);

  CHECK(session.next_batch() == 1);
  session.client.say_done();  // nothing has ended the stream before
  CHECK(session.client.finish().ok());
}

TEST_CASE("a descriptor on the reply socket reaches nobody", "[serve]") {
  Front front;
  Attached session(front);
  const std::string frame = framed(submit_message(1, {"/a"}));
  const int descriptor = session.client.segment();

  const ssize_t sent = send_message(session.client.replies(), std::as_bytes(std::span(frame)), {&descriptor, 1});

  if (sent < 0) {  // the kernel refuses it (Linux 6.16)
    CHECK(errno == EPERM);
    session.write(frame);
    CHECK(session.next_batch() == 1);
  } else {
    CHECK(session.client.finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_CASE("a session that ends while a large request is parsed ends in order", "[serve]") {
  Front front;
  for (int round = 0; round < 20; ++round) {
    Attached session(front);
    session.write(framed(large_submit(1)));
    if (round % 2 == 0) session.client.say_done();
    session.client.hang_up();
  }
  CHECK(eventually([&] { return front.counters().stored(MetricId::sessions) == 0; }));
  CHECK(eventually([&] { return front.ledger().in_use(Resource::kRequests) == 0; }));
}

TEST_CASE("half a request is charged no longer than its session's stream is there", "[serve]") {
  Front front;
  Attached session(front);
  const std::string large = framed(large_submit(1));
  session.write(large.substr(0, large.size() / 2));
  REQUIRE(eventually([&] { return front.ledger().in_use(Resource::kRequests) > 100'000; }));

  session.client.finish();  // it keeps its connection, as a client with a view of a tensor does

  CHECK(eventually([&] { return front.ledger().in_use(Resource::kRequests) == 0; }));
}
