// Whose socket lies at a path: a dead daemon's is removed, a living one's is not.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "daemon/door/socket_path.h"
#include "proto/base/unique_fd.h"
#include "proto/rpc/unix_address.h"
#include "tests/support/host/temp_folder.h"

using namespace millrace;

namespace {

UniqueFd bound_socket(const std::string& path, int type) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace

TEST_CASE("a path where nothing lies is free", "[serve]") {
  const TempFolder folder;

  CHECK(claim_socket_path(folder.path() + "/a.sock"));
}

TEST_CASE("a dead daemon's socket is removed", "[serve]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.sock";
  bound_socket(path, SOCK_STREAM).reset();
  REQUIRE(exists(path));

  REQUIRE(claim_socket_path(path));

  CHECK_FALSE(exists(path));
}

TEST_CASE("a living daemon's socket is left alone", "[serve]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.sock";
  const int type = GENERATE(SOCK_STREAM, SOCK_SEQPACKET);
  const UniqueFd living = bound_socket(path, type);
  REQUIRE(::listen(living.get(), 1) == 0);

  const Result<void> claimed = claim_socket_path(path);

  REQUIRE_FALSE(claimed);
  CHECK(claimed.error().code == Code::kPrecondition);
  CHECK_THAT(claimed.error().message, Catch::Contains("another daemon listens on " + path));
  CHECK(exists(path));
}

TEST_CASE("a file that is not a socket is left alone", "[serve]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.sock";
  std::ofstream(path) << "mine";

  const Result<void> claimed = claim_socket_path(path);

  REQUIRE_FALSE(claimed);
  CHECK(claimed.error().code == Code::kPrecondition);
  CHECK_THAT(claimed.error().message, Catch::Contains("is not a socket"));
  CHECK(exists(path));
}

TEST_CASE("gRPC's spelling of a path escapes what a URI cannot hold", "[serve]") {
  CHECK(unix_address("/run/millrace/millrace.sock") == "unix:/run/millrace/millrace.sock");
  CHECK(unix_address("/tmp/a b%?#\xc3.sock") == "unix:/tmp/a%20b%25%3F%23%C3.sock");
}
