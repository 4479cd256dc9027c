// The gRPC socket's connections: limits, what is said to those turned away, and that their end is noticed.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <optional>
#include <vector>

#include "daemon/door/grpc_connections.h"
#include "daemon/door/unix_listener.h"
#include "proto/base/bounded_queue.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr int kPassRights = 83;

// Stands where gRPC does: keeps what it is handed.
struct Door {
  explicit Door(Bounds bounds, int highest_descriptor = std::numeric_limits<int>::max(),
                std::optional<InForce<Admins>> admins = std::nullopt)
      : ledger(budgets(bounds)) {
    Result<std::unique_ptr<GrpcConnections>> made =
        GrpcConnections::create(ledger, {.path = path, .highest_descriptor = highest_descriptor, .admins = admins},
                                [this](int fd) { MILLRACE_CHECK(handed.try_push(UniqueFd(fd))); });
    REQUIRE(made);
    connections = *std::move(made);
  }
  UniqueFd take() { return handed.pop_until(std::chrono::steady_clock::now() + 20s).value_or(UniqueFd()); }

  static Budgets budgets(Bounds bounds) {
    Budgets made;
    made[Resource::kGrpcConnections] = bounds;
    return made;
  }

  Ledger ledger;
  TempFolder folder;
  std::string path = folder / "m.sock";
  BoundedQueue<UniqueFd> handed{64};
  std::unique_ptr<GrpcConnections> connections;
};

UniqueFd connect_to(const std::string& path) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const timeval patience{20, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

// All that comes until the end.
std::string read_to_end(const UniqueFd& socket) {
  std::string text;
  char part[256];
  for (ssize_t got = 0; (got = ::recv(socket.get(), part, sizeof part, 0)) > 0;) text.append(part, got);
  return text;
}

}  // namespace

TEST_CASE("a user's connections are limited, and one turned away is told why as HTTP/2 has it", "[serve]") {
  Door door({.total = 10, .user = 2});
  const UniqueFd one = connect_to(door.path), two = connect_to(door.path);

  const std::string said = read_to_end(connect_to(door.path));

  REQUIRE(said.size() > 26);
  CHECK(said.substr(0, 9) == std::string("\0\0\0\4\0\0\0\0\0", 9));  // SETTINGS
  CHECK(said[12] == 7);                                              // GOAWAY
  CHECK(said[25] == 11);                                             // ENHANCE_YOUR_CALM
  CHECK_THAT(said.substr(26),
             Catch::StartsWith("gRPC: 2 connections of user ") && Catch::Contains("limits.connections_per_user"));
}

TEST_CASE("a client that was turned away can go on writing for a while, and so reads why", "[serve]") {
  Door door({.total = 1});
  const UniqueFd one = connect_to(door.path);
  UniqueFd other;

  CHECK(eventually([&] {
    other = connect_to(door.path);
    return !read_to_end(other).empty() && ::send(other.get(), "x", 1, MSG_NOSIGNAL) == 1;
  }));
  CHECK(eventually([&] { return ::send(other.get(), "x", 1, MSG_NOSIGNAL) < 0; }));
}

TEST_CASE("of many clients that are turned away the first are told at once and let go of", "[serve]") {
  Door door({.total = 1});
  const UniqueFd one = connect_to(door.path);
  std::vector<UniqueFd> others;
  for (std::size_t i = 0; i <= UnixListener::kMostTurnedAway; ++i) others.push_back(connect_to(door.path));

  CHECK(eventually([&] { return ::send(others.front().get(), "x", 1, MSG_NOSIGNAL) < 0; }));
  CHECK_FALSE(read_to_end(others.front()).empty());
}

TEST_CASE("connections are limited in all", "[serve]") {
  Door door({.total = 1, .user = 2});
  const UniqueFd one = connect_to(door.path);

  CHECK_THAT(read_to_end(connect_to(door.path)), Catch::Contains("limits.connections in"));
}

TEST_CASE("beyond the limit on all a few connections are kept for administrators, and no more", "[serve]") {
  InForce<Admins> admins = *Admins::find({}, {.owner = ::geteuid()});
  Door door({.total = 1}, std::numeric_limits<int>::max(), admins);
  std::vector<UniqueFd> open, handed;
  for (std::uint32_t i = 0; i < 1 + UnixListener::kKept; ++i) {
    open.push_back(connect_to(door.path));
    handed.push_back(door.take());
  }

  const std::string said = read_to_end(connect_to(door.path));
  handed.pop_back();
  open.pop_back();
  const bool let_in_again = eventually([&] {
    const UniqueFd next = connect_to(door.path);
    return door.handed.size() > 0;
  });

  CHECK(std::ranges::all_of(handed, [](const UniqueFd& socket) { return bool(socket); }));
  CHECK_THAT(said, Catch::Contains("1 connections are open"));
  CHECK(let_in_again);
}

TEST_CASE("an administrator who has his own user's limit gets some of those kept, and no more", "[serve]") {
  Door door({.total = 100, .user = 1}, std::numeric_limits<int>::max(), *Admins::find({}, {.owner = ::geteuid()}));
  std::vector<UniqueFd> open, handed;
  for (std::uint32_t i = 0; i < 1 + UnixListener::kKept; ++i) {
    open.push_back(connect_to(door.path));
    handed.push_back(door.take());
  }

  CHECK(std::ranges::all_of(handed, [](const UniqueFd& socket) { return bool(socket); }));
  CHECK_THAT(read_to_end(connect_to(door.path)), Catch::Contains("limits.connections_per_user"));
}

TEST_CASE("a connection that the client ends counts until gRPC has closed it, too", "[serve]") {
  Door door({.total = 10, .user = 1});
  UniqueFd one = connect_to(door.path);
  UniqueFd held = door.take();

  one.reset();

  CHECK_THAT(read_to_end(connect_to(door.path)), Catch::Contains("limits.connections_per_user"));
  held.reset();
  CHECK(eventually([&] {
    const UniqueFd next = connect_to(door.path);
    return ::send(next.get(), "x", 1, MSG_NOSIGNAL) == 1 && door.handed.size() > 0;
  }));
}

TEST_CASE("a connection that gRPC ends makes room, though the client still holds it", "[serve]") {
  Door door({.total = 10, .user = 1});
  const UniqueFd one = connect_to(door.path);
  UniqueFd held = door.take();

  ::shutdown(held.get(), SHUT_RDWR);  // as gRPC does before it closes
  held.reset();

  CHECK(eventually([&] {
    const UniqueFd next = connect_to(door.path);
    return door.handed.size() > 0;
  }));
}

TEST_CASE("a connection that would take a descriptor kept for files waits until there is another", "[serve]") {
  UniqueFd lowest(::dup(0));
  Door door({}, lowest.get());  // nothing else fits below

  const UniqueFd waiting = connect_to(door.path);
  const bool let_in = door.handed.pop_until(std::chrono::steady_clock::now() + 300ms).has_value();
  lowest.reset();

  CHECK_FALSE(let_in);
  CHECK(door.take());
}

TEST_CASE("clients that were turned away are let go of when descriptors are short", "[serve]") {
  const auto connect_from_above = [](const std::string& path) {
    return UniqueFd(::fcntl(connect_to(path).get(), F_DUPFD_CLOEXEC, 500));
  };
  Door door({.total = 1}, UniqueFd(::dup(0)).get() + 16);
  const UniqueFd one = connect_from_above(door.path);
  std::vector<UniqueFd> others;
  for (std::size_t i = 0; i < UnixListener::kMostTurnedAway / 2; ++i) others.push_back(connect_from_above(door.path));

  const bool all_told =
      std::none_of(others.begin(), others.end(), [](const UniqueFd& other) { return read_to_end(other).empty(); });

  CHECK(all_told);
}

TEST_CASE("no descriptor can be sent to a connection where the kernel can refuse it", "[serve]") {
  const int off = 0;
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (::setsockopt(probe.get(), SOL_SOCKET, kPassRights, &off, sizeof off) != 0)
    return skip_loudly("a socket that refuses descriptors: this kernel has no SO_PASSRIGHTS");
  Door door({});
  const UniqueFd one = connect_to(door.path);
  char byte = 'x';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));

  const ssize_t before_accept = ::sendmsg(one.get(), &message, MSG_NOSIGNAL);
  const int first_error = errno;
  const UniqueFd held = door.take();
  const ssize_t after_accept = ::sendmsg(one.get(), &message, MSG_NOSIGNAL);

  CHECK(before_accept == -1);
  CHECK(first_error == EPERM);
  CHECK(after_accept == -1);
}

TEST_CASE("a stopped door is gone from its folder and hands nothing over", "[serve]") {
  Door door({});

  door.connections->stop();

  CHECK(::access(door.path.c_str(), F_OK) != 0);
}
