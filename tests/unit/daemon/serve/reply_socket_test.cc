// A session's messages on their way to its client: the socket alone, then a whole session.
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <string>

#include "daemon/serve/sessions/reply_socket.h"
#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

// The control thread is the test's own: poll() is one turn of it.
struct Pair {
  explicit Pair(std::shared_ptr<Account> account = nullptr) {
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    client.reset(ends[1]);
    auto made = ReplySocket::create(control, UniqueFd(ends[0]), std::move(account));
    REQUIRE(made);
    socket = *std::move(made);
  }
  void turn() {
    control.restart();
    control.poll();
  }

  boost::asio::io_context control{1};
  std::shared_ptr<ReplySocket> socket;
  UniqueFd client;
};

v1::ServerMessage numbered(std::uint64_t number, std::size_t padding = 0) {
  v1::ServerMessage message;
  message.mutable_failed()->set_batch_id(number);
  message.mutable_failed()->set_message(std::string(padding, 'x'));
  return message;
}

}  // namespace

TEST_CASE("replies arrive in order and whole, also when the client's buffer is full", "[serve]") {
  Pair pair;
  constexpr std::uint64_t kMessages = 60;
  constexpr std::size_t kPadding = 100'000;  // all of them: 6 MB, far more than a socket buffer

  for (std::uint64_t i = 0; i < kMessages; ++i) pair.socket->send(numbered(i, kPadding));
  std::future<std::vector<std::uint64_t>> read = std::async(std::launch::async, [&] {
    std::vector<std::uint64_t> numbers;
    while (numbers.size() < kMessages) {
      const auto message = read_reply(pair.client.get());
      if (!message || message->failed().message().size() != kPadding) break;
      numbers.push_back(message->failed().batch_id());
    }
    return numbers;
  });
  while (read.wait_for(1ms) != std::future_status::ready) pair.turn();

  const std::vector<std::uint64_t> numbers = read.get();
  REQUIRE(numbers.size() == kMessages);
  CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_CASE("an early wake-up is a length of nothing, and left out where a client has much to read anyway", "[serve]") {
  Pair pair;

  pair.socket->send_early_wake_up();

  char bytes[8] = {1, 1, 1, 1};
  REQUIRE(::recv(pair.client.get(), bytes, sizeof bytes, MSG_DONTWAIT) == 4);
  CHECK(std::string(bytes, 4) == std::string(4, 0));
  for (std::uint64_t i = 0; i < 20; ++i) pair.socket->send(numbered(i, 100'000));
  const std::size_t waiting = pair.socket->unsent();
  REQUIRE(waiting > 0);
  pair.socket->send_early_wake_up();
  CHECK(pair.socket->unsent() == waiting);
}

TEST_CASE("a client that leaves too much unread is reported once, and cut off", "[serve]") {
  Pair pair;
  std::vector<Error> reports;
  pair.socket->on_lost([&](const Error& error) { reports.push_back(error); });

  for (std::uint64_t i = 0; i < 200; ++i) pair.socket->send(numbered(i, 100'000));
  CHECK(reports.empty());  // not in the midst of a step that sends
  pair.turn();
  pair.turn();

  REQUIRE(reports.size() == 1);
  CHECK(reports[0].code == Code::kExhausted);
  CHECK_THAT(reports[0].message, Catch::Contains("unread"));
  char bytes[65'536];
  while (::recv(pair.client.get(), bytes, sizeof bytes, 0) > 0) continue;
  CHECK(::recv(pair.client.get(), bytes, sizeof bytes, 0) == 0);
}

TEST_CASE("what is left of the first message that a client does not read is charged to it", "[serve]") {
  Budgets budgets;
  budgets[Resource::kRequests].total = 64 << 20;
  Ledger ledger(budgets);
  Pair pair(ledger.account({UserId{1}, SessionId{1}}));

  pair.socket->send(numbered(1, 4'000'000));
  const std::uint64_t held = ledger.in_use(Resource::kRequests);
  pair.client.reset();
  pair.turn();

  CHECK(held >= 3'000'000);
  CHECK(ledger.in_use(Resource::kRequests) == 0);
}

TEST_CASE("the end comes behind what was sent, and nothing after it", "[serve]") {
  Pair pair;

  pair.socket->send(numbered(1));
  pair.socket->finish();
  pair.socket->finish();
  pair.socket->send(numbered(2));

  CHECK(read_reply(pair.client.get())->failed().batch_id() == 1);
  CHECK_FALSE(read_reply(pair.client.get()));
}

TEST_CASE("the end waits until a full buffer has room", "[serve]") {
  Pair pair;

  for (std::uint64_t i = 0; i < 10; ++i) pair.socket->send(numbered(i, 100'000));
  pair.socket->finish();
  std::future<int> read = std::async(std::launch::async, [&] {
    int messages = 0;
    while (read_reply(pair.client.get())) ++messages;
    return messages;
  });
  while (read.wait_for(1ms) != std::future_status::ready) pair.turn();

  CHECK(read.get() == 10);
}

TEST_CASE("a client that has closed its end is reported once, and what is sent to it is dropped", "[serve]") {
  Pair pair;
  std::vector<Error> reports;
  pair.socket->on_lost([&](const Error& error) { reports.push_back(error); });
  pair.client.reset();

  for (int i = 0; i < 10; ++i) pair.socket->send(numbered(1, 1'000'000));  // more than may wait unread
  CHECK(reports.empty());                                                  // not in the midst of a step that sends
  pair.turn();
  pair.turn();

  CHECK(pair.socket->unsent() == 0);
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].code == Code::kPrecondition);
  CHECK_THAT(reports[0].message, Catch::Contains("closed its reply socket"));
}

TEST_CASE("a client that closes its end while the session ends is reported to nobody", "[serve]") {
  Pair pair;
  bool reported = false;
  pair.socket->on_lost([&](const Error&) { reported = true; });
  for (std::uint64_t i = 0; i < 10; ++i) pair.socket->send(numbered(i, 100'000));

  pair.socket->finish();
  pair.client.reset();
  pair.turn();
  pair.turn();

  CHECK_FALSE(reported);
}

TEST_CASE("a session's messages, all but Attached, come by its reply socket", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  client.send(submit_message(1, {"/a", "/b"}));

  const auto completed = read_reply(client.replies());
  client.send(submit_message(2, {}));
  const auto refused = read_reply(client.replies());
  client.say_done();

  REQUIRE(completed);
  CHECK(completed->completed().batch_id() == 1);
  CHECK(completed->completed().handle().samples() == 2);
  REQUIRE(refused);
  CHECK(refused->failed().batch_id() == 2);
  CHECK(client.finish().ok());
  CHECK_FALSE(read_reply(client.replies()));
}

TEST_CASE("an early wake-up comes before the message of every batch", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();

  for (const std::uint64_t batch : {1, 2}) {
    client.send(submit_message(batch, {"/a", "/b"}));
    std::uint32_t length = ~0U;
    REQUIRE(::recv(client.replies(), &length, sizeof length, MSG_WAITALL) == sizeof length);
    CHECK(length == 0);
    const auto completed = read_reply(client.replies());
    REQUIRE(completed);
    CHECK(completed->completed().batch_id() == batch);
  }
}

TEST_CASE("a client that closes its reply socket is told so by its stream, and its work is cancelled", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  client.send(submit_message(1, {"/a"}));

  SECTION("at once") {}
  SECTION("after it has said that it writes no more") {
    ::shutdown(client.replies(), SHUT_WR);
    CHECK(client.read());  // the daemon has seen that, and still answers
  }
  client.close_replies();

  const grpc::Status status = client.finish();
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Contains("closed its reply socket"));
  CHECK(eventually([&] { return front.counters().stored(MetricId::batches_in_flight) == 0; }));
  CHECK(client.statistics().sessions_size() == 1);  // its slots stay readable
}

TEST_CASE("a stopping daemon ends replies behind what was sent, and the stream says why", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  client.send(submit_message(1, {"/a"}));
  REQUIRE(eventually([&] { return front.counters().stored(MetricId::batches_completed) == 1; }));

  front.shut_down(5s);

  CHECK(read_reply(client.replies())->has_completed());
  CHECK_FALSE(read_reply(client.replies()));
  CHECK_THAT(client.finish().error_message(), Catch::Contains("millraced is stopping"));
}

TEST_CASE("a client that reads its stream but not its replies is cut off with the reason", "[serve]") {
  Front front;
  RawClient client(front.socket());
  client.open();
  client.attach();
  const v1::ClientMessage many_bad = submit_message(1, std::vector<std::string>(20, "/bad/" + std::string(4'000, 'a')));

  std::uint64_t sent = 0;
  while (sent < 100'000 && client.send(many_bad)) ++sent;  // each is answered at length

  CHECK(sent < 100'000);
  const grpc::Status status = client.finish();
  CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(status.error_message(), Catch::Contains("unread"));
  CHECK(eventually([&] { return client.statistics().sessions_size() == 1; }));  // its slots stay readable
}
