#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "client/src/ring.h"
#include "proto/base/unique_fd.h"

using millrace::Bytes;
using millrace::Code;
using millrace::InputRing;

namespace {

InputRing ring_of(std::uint64_t bytes) {
  const millrace::UniqueFd memfd(::memfd_create("ring", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memfd.get(), static_cast<off_t>(bytes)) == 0);
  auto shared = InputRing::Shared::map(memfd.get(), Bytes{bytes});
  REQUIRE(shared);
  return InputRing(*std::move(shared));
}

}  // namespace

TEST_CASE("rooms of a ring do not overlap and are aligned", "[client]") {
  InputRing ring = ring_of(8192);

  const auto one = ring.allocate(100);
  const auto two = ring.allocate(1);

  REQUIRE(one->offset() % 64 == 0);
  REQUIRE(two->offset() >= one->offset() + 100);
  REQUIRE(two->offset() % 64 == 0);
  REQUIRE(one->bytes().size() == 100);
}

TEST_CASE("rooms that are given back grow together again in any order", "[client]") {
  InputRing ring = ring_of(4096);
  std::vector<millrace::RingRoom> rooms;
  for (int i = 0; i < 64; ++i) rooms.push_back(*ring.allocate(64));
  REQUIRE(ring.allocate(1).error().code == Code::kExhausted);

  for (const std::size_t i : {5, 7, 6, 0, 63}) rooms[i] = {};
  REQUIRE(ring.allocate(3 * 64));
  rooms.clear();

  REQUIRE(ring.allocate(4096));
}

TEST_CASE("a room is taken until its last copy is gone", "[client]") {
  InputRing ring = ring_of(4096);
  std::optional<millrace::RingRoom> room = *ring.allocate(4096);
  std::optional<millrace::RingRoom> copy = room;

  room.reset();
  REQUIRE_FALSE(ring.allocate(1));
  copy.reset();

  REQUIRE(ring.allocate(4096));
}

TEST_CASE("a ring says what it cannot hold", "[client]") {
  InputRing ring = ring_of(4096);

  REQUIRE(ring.allocate(0).error().code == Code::kInvalid);
  REQUIRE(ring.allocate(4097).error().code == Code::kInvalid);
  REQUIRE(millrace::whole_pages(Bytes{0}).error().code == Code::kInvalid);
  REQUIRE(millrace::whole_pages(Bytes{~std::uint64_t{0}}).error().code == Code::kInvalid);
  REQUIRE(*millrace::whole_pages(Bytes{5000}) == Bytes{8192});
}

TEST_CASE("a ring for which there is no memory is an error that says what to do, and no SIGBUS", "[client]") {
  const millrace::UniqueFd memfd(::memfd_create("ring", MFD_CLOEXEC));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);

  const auto ring = InputRing::Shared::map(memfd.get(), Bytes{8192});

  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, ignored);
  REQUIRE(ring.error().code == Code::kExhausted);
  REQUIRE_THAT(ring.error().message, Catch::Contains("open another session for a smaller one"));
}
