// Closes that sleep, for real: a TCP socket of the loopback with unsent data and SO_LINGER.
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>

#include "daemon/door/sleep_breaker.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/lingering_socket.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;  // a quarter of what the close would sleep
static_assert(kPatience < std::chrono::seconds(LingeringSocket::kSeconds) / 2);

TEST_CASE("a thread that sleeps in close() is woken", "[handoff]") {
  LingeringSocket lingering;
  const auto breaker = SleepBreaker::create([](int) {});
  REQUIRE(breaker);

  std::future<void> closed = std::async(std::launch::async, [fd = lingering.release()]() mutable { fd.reset(); });

  REQUIRE(closed.wait_for(kPatience) == std::future_status::ready);
}

TEST_CASE("a thread that sleeps in recvmsg() over a passed descriptor is woken, and the socket reported", "[handoff]") {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  LingeringSocket lingering;
  const std::byte byte{};
  const int fd = lingering.fd();
  REQUIRE(send_message(theirs.get(), {&byte, 1}, {&fd, 1}) == 1);
  lingering.release().reset();  // the message has the last reference
  std::promise<int> reported;
  const auto breaker = SleepBreaker::create([&, told = false](int socket) mutable {
    if (!std::exchange(told, true)) reported.set_value(socket);
  });
  REQUIRE(breaker);

  std::future<ssize_t> received = std::async(std::launch::async, [&] {
    std::array<std::byte, 8> bytes{};
    return receive_message(ours.get(), bytes, 0).bytes;
  });

  std::future<int> socket = reported.get_future();
  REQUIRE(socket.wait_for(kPatience) == std::future_status::ready);
  REQUIRE(socket.get() == ours.get());
  REQUIRE(received.wait_for(kPatience) == std::future_status::ready);
  REQUIRE(received.get() == 1);
}

TEST_CASE("a thread with short sleeps does not sleep in close()", "[handoff]") {
  LingeringSocket one, other;

  std::future<void> closed =
      std::async(std::launch::async, [first = one.release(), second = other.release()]() mutable {
        const ShortSleeps guard;
        first.reset();
        second.reset();
      });

  REQUIRE(closed.wait_for(kPatience) == std::future_status::ready);
}

}  // namespace
}  // namespace millrace
