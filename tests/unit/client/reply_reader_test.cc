// What comes over a reply socket, in whatever pieces, and what is no message.
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "client/src/wire/reply_reader.h"
#include "tests/support/host/reply_frames.h"

using namespace std::chrono_literals;
using millrace::Code;
using millrace::frame_length;
using millrace::ReplyReader;
using millrace::Result;
using millrace::UniqueFd;
namespace v1 = millrace::v1;

namespace {

struct Daemon {
  Daemon() {
    int ends[2] = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    socket.reset(ends[0]);
    reader = std::make_unique<ReplyReader>(UniqueFd(ends[1]));
  }

  // Any thread. A send that fails shows in what is received.
  void send(const std::string& bytes) const { ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  Result<bool> receive(std::chrono::milliseconds within = 0ms) {
    return reader->receive(millrace::deadline_after(within),
                           [this](v1::ServerMessage& message) { batches.push_back(message.failed().batch_id()); });
  }

  UniqueFd socket;
  std::unique_ptr<ReplyReader> reader;
  std::vector<std::uint64_t> batches;
};

std::string framed_reply(std::uint64_t batch, std::size_t padding = 0) {
  v1::ServerMessage message;
  message.mutable_failed()->set_batch_id(batch);
  message.mutable_failed()->set_message(std::string(padding, 'x'));
  return millrace::framed(message);
}

}  // namespace

TEST_CASE("several messages in one piece are all given, in order", "[client]") {
  Daemon daemon;
  daemon.send(framed_reply(1) + framed_reply(2) + framed_reply(3));

  REQUIRE(*daemon.receive());

  CHECK(daemon.batches == std::vector<std::uint64_t>{1, 2, 3});
  CHECK_FALSE(*daemon.receive());
}

TEST_CASE("a message in single bytes is given once it is whole", "[client]") {
  Daemon daemon;
  const std::string bytes = framed_reply(7);
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    daemon.send(bytes.substr(i, 1));
    REQUIRE_FALSE(*daemon.receive());
  }

  daemon.send(bytes.substr(bytes.size() - 1));

  REQUIRE(*daemon.receive());
  CHECK(daemon.batches == std::vector<std::uint64_t>{7});
}

TEST_CASE("a message longer than the buffer behind a short one is given whole", "[client]") {
  Daemon daemon;
  const std::string bytes = framed_reply(1) + framed_reply(2, 100'000) + framed_reply(3);

  std::thread sender([&] { daemon.send(bytes); });
  while (daemon.batches.size() < 3) REQUIRE(daemon.receive(30'000ms));
  sender.join();

  CHECK(daemon.batches == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("an early wake-up is no news, and the message behind it is, at once or late", "[client]") {
  Daemon daemon;
  daemon.send(frame_length(0));
  REQUIRE_FALSE(*daemon.receive());
  REQUIRE_FALSE(*daemon.receive());

  daemon.send(framed_reply(1) + frame_length(0) + framed_reply(2) + frame_length(0));

  REQUIRE(*daemon.receive());
  CHECK(daemon.batches == std::vector<std::uint64_t>{1, 2});
  daemon.send(framed_reply(3));
  REQUIRE(*daemon.receive());
  CHECK(daemon.batches == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("what is no message ends the reading with an error", "[client]") {
  Daemon huge, garbage;
  huge.send(frame_length(0xFFFFFFFF));
  garbage.send(frame_length(3) + "\xFF\xFF\xFF");

  const Result<bool> too_long = huge.receive();
  const Result<bool> no_message = garbage.receive();

  REQUIRE_FALSE(too_long);
  CHECK(too_long.error().code == Code::kInternal);
  CHECK_FALSE(huge.reader->open());
  REQUIRE_FALSE(no_message);
  CHECK_FALSE(garbage.reader->open());
}

TEST_CASE("the end is news, and then there is nothing any more", "[client]") {
  Daemon daemon;
  daemon.send(framed_reply(1));
  daemon.socket.reset();

  REQUIRE(*daemon.receive());
  REQUIRE(daemon.reader->open());
  REQUIRE(*daemon.receive());

  CHECK_FALSE(daemon.reader->open());
  CHECK(daemon.batches == std::vector<std::uint64_t>{1});
}

TEST_CASE("another thread can end a wait", "[client]") {
  Daemon daemon;
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    daemon.reader->wake();
  });

  const Result<bool> news = daemon.receive(3'600'000ms);  // longer than this test may take
  waker.join();

  REQUIRE(news);
  CHECK_FALSE(*news);
}

TEST_CASE("without a socket there is nothing to read", "[client]") {
  ReplyReader reader{UniqueFd()};

  CHECK_FALSE(reader.open());
}
