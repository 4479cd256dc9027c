#include "proto/base/sockets/socket_message.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

namespace millrace {
namespace {

struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  UniqueFd ours, theirs;
};

std::span<const std::byte> hello() {
  return std::as_bytes(std::span("hello", 5));
}

TEST_CASE("descriptors go with a message, arrive close-on-exec, and are the same files", "[base]") {
  const Pair pair;
  std::array<UniqueFd, 3> files;
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].reset(::memfd_create("file", MFD_CLOEXEC));
    numbers[i] = files[i].get();
    REQUIRE(::ftruncate(numbers[i], static_cast<off_t>(i + 1)) == 0);
  }
  std::array<std::byte, 8> bytes{};

  REQUIRE(send_message(pair.ours.get(), hello(), numbers) == 5);
  const ReceivedMessage received = receive_message(pair.theirs.get(), bytes, 4);

  REQUIRE(received.bytes == 5);
  REQUIRE(std::memcmp(bytes.data(), "hello", 5) == 0);
  REQUIRE_FALSE(received.dropped);
  REQUIRE(received.descriptors.size() == 3);
  for (std::size_t i = 0; i < files.size(); ++i) {
    REQUIRE(::lseek(received.descriptors[i].get(), 0, SEEK_END) == static_cast<off_t>(i + 1));
    REQUIRE((::fcntl(received.descriptors[i].get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}

TEST_CASE("more descriptors than there is room for are dropped, and the message says so", "[base]") {
  const Pair pair;
  const std::array<int, 9> numbers{0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::array<std::byte, 8> bytes{};

  REQUIRE(send_message(pair.ours.get(), hello(), numbers) == 5);
  const ReceivedMessage received = receive_message(pair.theirs.get(), bytes, 4);

  REQUIRE(received.bytes == 5);
  REQUIRE(received.dropped);
  REQUIRE(received.descriptors.size() == 4);
}

TEST_CASE("messages without descriptors, the end, and errors are told apart", "[base]") {
  Pair pair;
  std::array<std::byte, 8> bytes{};

  REQUIRE(receive_message(pair.theirs.get(), bytes, 1, MSG_DONTWAIT).bytes == -1);
  REQUIRE(errno == EAGAIN);
  REQUIRE(send_message(pair.ours.get(), hello(), {}) == 5);
  REQUIRE(receive_message(pair.theirs.get(), bytes, 1).descriptors.empty());
  pair.theirs.reset();
  REQUIRE(send_message(pair.ours.get(), hello(), {}) == -1);  // and no SIGPIPE
  REQUIRE(errno == EPIPE);
  REQUIRE(receive_message(pair.ours.get(), bytes, 1).bytes == 0);
}

}  // namespace
}  // namespace millrace
